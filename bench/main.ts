/** `npm run bench -- <scenario> [options]`: figures of one run, with their conditions. `--help` says what there is. */
import { readCommand } from './command-line.js'
import { breaks } from './figures.js'
import { Refusal } from './options.js'
import { jsonLine, shown, shownConditions } from './report.js'
import { SCENARIOS } from './scenarios.js'
import { openSetting, type Setting } from './setting.js'

type ToRun = Extract<ReturnType<typeof readCommand>, { do: 'run' }>

try {
  const command = readCommand(process.argv.slice(2), SCENARIOS)
  if (command.do === 'help') console.log(command.text)
  else await run(command)
} catch (error) {
  if (!(error instanceof Refusal)) throw error
  console.error(`${error.message}\nSee: npm run bench -- --help`)
  process.exitCode = 2
}

async function run({ runs, size, form }: ToRun): Promise<void> {
  const setting = await openSetting(size)
  const forget = closeOnSignal(setting)
  try {
    if (setting.conditions.durable !== true)
      console.error('warning: commits of this server are not durable (fsync, synchronous_commit): it has it easier')
    if (form === 'lines') console.log(`${shownConditions(setting.conditions)}\n`)
    for (const { scenario, options } of runs)
      for await (const figures of scenario.run(setting, options)) {
        console.log(form === 'json' ? jsonLine(figures, setting.conditions) : `${shown(figures)}\n`)
        if (breaks(figures, size)) process.exitCode = 1
      }
  } finally {
    forget()
    await setting.close()
  }
}

/** An interrupted run leaves no server and no schema behind either. */
function closeOnSignal(setting: Setting): () => void {
  const close = (): void => {
    void setting.close().finally(() => process.exit(130))
  }
  process.once('SIGINT', close)
  process.once('SIGTERM', close)
  return () => {
    process.off('SIGINT', close)
    process.off('SIGTERM', close)
  }
}
