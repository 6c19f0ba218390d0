/** How the command ends: every exit code, in one table. Read by main, help and the commands. */

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  unproven: 4,
  declined: 5,
  interrupted: 130,
  terminated: 143,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

const MEANINGS: readonly [ExitCode, string][] = [
  [EXIT.ok, 'done; an empty list is an answer too'],
  [EXIT.failed, 'failed: the store was away or refused it; something unexpected; doctor: not well'],
  [EXIT.usage, 'usage: a command, option or value that does not exist or may not be; nothing was done'],
  [EXIT.notFound, 'not found, or for some of several jobs not done; the answer says which'],
  [
    EXIT.unproven,
    'the demo could not prove that nothing was lost or doubled; verify: a promise is broken, or was not judged',
  ],
  [EXIT.declined, 'the question was not answered with yes: nothing was changed'],
  [EXIT.interrupted, 'ended by Ctrl-C before it was done (for a worker: by the second one)'],
  [EXIT.terminated, 'ended by SIGTERM before it was done (for a worker: by the second one)'],
]

/** The table, for the end of the help. */
export function exitCodeHelp(): string {
  const lines = MEANINGS.map(([code, meaning]) => `  ${String(code).padEnd(5)}${meaning}`)
  return ['Exit codes:', ...lines].join('\n')
}
