/** What checks look at: the store behind a queue, each fact of it asked for once. Made by doctor.ts. */
import type { Queue } from '../../client/queue.js'
import type {
  DatabaseFacts,
  Diagnose,
  KindRuns,
  QueueView,
  Storage,
  TableFacts,
  WaitingKind,
  WorkerView,
} from '../../storage/storage.js'

/** The store does not tell it: told of the check, not of the command. */
export class NotTold extends Error {}

export class Site {
  readonly storage: Storage
  /** Several checks look at the same facts; they shall judge the same moment. */
  private readonly known = new Map<string, Promise<unknown>>()

  constructor(
    readonly queue: Queue,
    readonly schema: string,
  ) {
    this.storage = queue.connection.storage
  }

  get env(): Queue['connection']['env'] {
    return this.queue.connection.env
  }

  get diagnose(): Diagnose {
    const { diagnose, name } = this.storage
    if (diagnose === undefined) throw new NotTold(`the ${name} store tells nothing of its health`)
    return diagnose
  }

  get database(): DatabaseFacts {
    const { database } = this.diagnose
    if (database === undefined) throw new NotTold(`the ${this.storage.name} store is no SQL database`)
    return database
  }

  workers(): Promise<WorkerView[]> {
    return this.once('workers', () => this.queue.workers())
  }

  queues(): Promise<QueueView[]> {
    return this.once('queues', () => this.queue.queues())
  }

  waiting(): Promise<WaitingKind[]> {
    return this.once('waiting', async () => this.diagnose.waiting())
  }

  runs(): Promise<KindRuns[]> {
    return this.once('runs', async () => this.diagnose.runs())
  }

  settings(): ReturnType<DatabaseFacts['settings']> {
    return this.once('settings', async () => this.database.settings())
  }

  tables(): Promise<TableFacts[]> {
    return this.once('tables', async () => this.database.tables())
  }

  private once<T>(name: string, ask: () => Promise<T>): Promise<T> {
    const known = this.known.get(name) ?? ask()
    this.known.set(name, known)
    return known as Promise<T>
  }
}
