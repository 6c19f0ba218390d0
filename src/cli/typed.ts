/**
 * The command as whoever reads a message can type it: somebody who ran `npx leasehold` has no `leasehold` on the path.
 * Called wherever a message names a command to run.
 */

/** Words that follow the name of the command where a message means the command and no sentence. */
const NAMED =
  /(?<![\w/.@-])leasehold (?=(?:bench|dead|demo|dev|doctor|enqueue|help|jobs|migrate|partitions|queues|scale|stats|tail|verify|work|workers)\b)/g

/** Every `leasehold COMMAND` in the text, as it is typed here. */
export function asTyped(text: string, host: Pick<NodeJS.Process, 'argv' | 'env'> = process): string {
  const command = commandOf(host)
  return command === 'leasehold' ? text : text.replace(NAMED, `${command} `)
}

/** By the package manager that runs it; by where the file lies that was run. */
function commandOf({ argv, env }: Pick<NodeJS.Process, 'argv' | 'env'>): string {
  const manager = /^(npm|pnpm|yarn|bun)\//.exec(env.npm_config_user_agent ?? '')?.[1]
  if (manager === 'npm') return 'npx leasehold'
  if (manager !== undefined) return `${manager === 'bun' ? 'bunx' : manager} leasehold`
  const script = argv[1] ?? ''
  // A link that a package manager has made for everybody; that of one project is on no path.
  const isGlobal = /(?:^|[\\/])leasehold$/.test(script) && !script.includes('node_modules')
  return isGlobal ? 'leasehold' : 'npx leasehold'
}
