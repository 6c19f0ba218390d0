/** The published types compile in a program that has nothing but TypeScript: no @types/node, no libs of its own choice. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import ts from 'typescript'
import { ROOT } from '../support/source.js'

const PROGRAM = `
import { connect, dead, defineJob, newJobId, QueueError, worker, type JobView, type WorkerHealth } from 'leasehold'
import { runConformance, VirtualTime } from 'leasehold/testing'

const send = defineJob<{ to: string }, { id: string }>('send', { retry: { attempts: 3 } })
export async function main(url: string): Promise<JobView | null> {
  await using queue = await connect(url, { log: (event) => event.type })
  const job = await queue.enqueue(send, { to: 'ada' }, { delay: '5s', id: newJobId() })
  const running = worker(queue, [send.handle(({ to }, { signal }) => (signal.aborted ? dead(to) : { id: to }))])
  const health: WorkerHealth = running.health()
  if (health.status !== 'ok') throw new QueueError('WORKER_STOPPED', 'no')
  return job.get()
}
export const tools = [runConformance, VirtualTime]
`

/** A project of somebody else's that has the package and what it depends on, but no types of Node or of drivers. */
async function project(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'leasehold-types-'))
  const modules = join(dir, 'node_modules')
  await mkdir(join(modules, '@standard-schema'), { recursive: true })
  await mkdir(join(modules, 'leasehold'))
  for (const part of ['dist', 'package.json']) await symlink(join(ROOT, part), join(modules, 'leasehold', part))
  const spec = '@standard-schema/spec'
  await symlink(join(ROOT, 'node_modules', spec), join(modules, spec))
  await writeFile(join(dir, 'package.json'), '{"type":"module"}')
  await writeFile(join(dir, 'main.ts'), PROGRAM)
  return dir
}

function faults(dir: string, target: ts.ScriptTarget): string[] {
  const options: ts.CompilerOptions = {
    strict: true,
    module: ts.ModuleKind.NodeNext,
    target,
    types: [],
    typeRoots: [],
    noEmit: true,
    skipLibCheck: false,
    // Else the links lead into this repository, which has the types that such a project lacks.
    preserveSymlinks: true,
  }
  const host = ts.createCompilerHost(options)
  host.getCurrentDirectory = () => dir
  const program = ts.createProgram([join(dir, 'main.ts')], options, host)
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    return `${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}

test('a strict program compiles against the built package for usual targets, without types of Node', async (t) => {
  const dir = await project()
  t.after(() => rm(dir, { recursive: true, force: true, maxRetries: 20 }))
  for (const target of [ts.ScriptTarget.ES2022, ts.ScriptTarget.ES2023, ts.ScriptTarget.ESNext])
    assert.deepEqual(faults(dir, target), [])
})
