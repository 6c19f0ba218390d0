/**
 * A network between a client and its server that a test can spoil: cut, refuse, swallow, delay, flap, mute single
 * connections, lead to another server. It reads what clients send, so that statements can be counted and told apart.
 */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

export interface ProxyOptions {
  /** What a chunk from the server becomes. */
  rewrite?: (chunk: Buffer) => Buffer
  /** `not`: what clients send is not looked at. */
  read?: 'statements' | 'not'
}

/** To the server, and from it. */
export type Direction = 'requests' | 'answers'
const BOTH: readonly Direction[] = ['requests', 'answers']

export class TcpProxy {
  private swallows: readonly Direction[] = []
  /** Each way; what was sent before keeps its place. */
  delayMs = 0
  /** A connection that sends a statement like this is half open from then on. */
  mute: RegExp | undefined
  /** What clients have sent since it was last emptied: the name or text of each statement. */
  readonly sent: string[] = []
  private readonly links = new Set<Link>()
  private readonly through: URL
  private target: { host: string; port: number }
  private server: Server
  private port = 0

  private constructor(
    url: string,
    readonly rewrite: (chunk: Buffer) => Buffer,
    readonly reads: boolean,
  ) {
    this.through = new URL(url)
    this.target = partsOf(url)
    this.server = this.newServer()
  }

  static async to(url: string, options: ProxyOptions = {}): Promise<TcpProxy> {
    const { rewrite = (chunk) => chunk, read = 'statements' } = options
    const proxy = new TcpProxy(url, rewrite, read === 'statements')
    await proxy.listen()
    proxy.through.host = `127.0.0.1:${proxy.port}`
    return proxy
  }

  /** The server's URL by way of the proxy. */
  get url(): string {
    return this.through.href
  }

  /** The same for another user, or another database. */
  urlFor(change: (url: URL) => void): string {
    const url = new URL(this.url)
    change(url)
    return url.href
  }

  /**
   * While it is set nothing passes in either direction, and nobody is told: connections are half open. They stay so
   * afterwards; only new ones get through then.
   */
  set swallow(on: boolean) {
    this.lose(on ? BOTH : [])
  }

  /** The same for what goes one way; nothing is lost any more for none. */
  lose(directions: readonly Direction[]): void {
    this.swallows = directions
    for (const link of this.links) link.lose(directions)
  }

  /** Those that are half open now: what is answered ends them at both sides, as sooner or later every system notices. */
  halfOpen(): () => void {
    const silent = [...this.links].filter((link) => link.silent)
    return () => {
      for (const link of silent) link.cut()
    }
  }

  /** Connections that are open now. */
  get open(): number {
    return this.links.size
  }

  /** New connections lead to another server; the ones there are stay where they lead. */
  leadTo(url: string): void {
    this.target = partsOf(url)
  }

  /** Every connection ends, in the middle of whatever is under way. */
  cut(): void {
    for (const link of this.links) link.cut()
  }

  /** Nobody listens any more: connections end, and new ones are refused. */
  async refuse(): Promise<void> {
    const closed = once(this.server, 'close')
    this.server.close()
    this.cut()
    await closed
  }

  /** The end of `refuse`, at the same port. */
  async accept(): Promise<void> {
    this.server = this.newServer()
    await this.listen()
  }

  /** Cuts a connection here and all of them there, at random points; answers what ends it. */
  flap({ minMs, maxMs, random }: { minMs: number; maxMs: number; random: () => number }): { stop(): number } {
    let cuts = 0
    let timer: NodeJS.Timeout
    const again = (): void => {
      timer = setTimeout(
        () => {
          const links = [...this.links]
          cuts += 1
          if (random() < 0.5) this.cut()
          else links[Math.floor(random() * links.length)]?.cut()
          again()
        },
        minMs + random() * (maxMs - minMs),
      )
    }
    again()
    return {
      stop: () => {
        clearTimeout(timer)
        return cuts
      },
    }
  }

  async close(): Promise<void> {
    if (this.server.listening) await this.refuse()
    else this.cut()
  }

  private newServer(): Server {
    return createServer({ allowHalfOpen: true }, (near) => {
      const link = new Link(this, near, connect({ ...this.target, allowHalfOpen: true }), () => this.links.delete(link))
      link.lose(this.swallows)
      this.links.add(link)
    })
  }

  private async listen(): Promise<void> {
    this.server.listen(this.port, '127.0.0.1')
    await once(this.server, 'listening')
    this.port = (this.server.address() as { port: number }).port
  }
}

/** One connection through the proxy. */
class Link {
  private readonly lost = new Set<Direction>()
  private readonly frontend = new Frontend()

  constructor(
    private readonly proxy: TcpProxy,
    private readonly near: Socket,
    private readonly far: Socket,
    onClose: () => void,
  ) {
    for (const socket of [near, far]) socket.on('error', () => {})
    const toServer = this.pipe(near, far, 'requests')
    const toClient = this.pipe(far, near, 'answers')
    near.on('data', (chunk) => {
      if (proxy.reads) this.read(chunk)
      if (!this.lost.has('requests')) toServer(() => far.write(chunk))
    })
    far.on('data', (chunk) => this.lost.has('answers') || toClient(() => near.write(proxy.rewrite(chunk))))
    let open = 2
    for (const [socket, other, direction] of [
      [near, far, 'requests'],
      [far, near, 'answers'],
    ] as const)
      socket.on('close', () => {
        open -= 1
        if (open === 0) onClose()
        else if (!this.lost.has(direction)) other.destroy()
      })
  }

  /** Something of it does not pass any more. */
  get silent(): boolean {
    return this.lost.size > 0
  }

  /** For good: a stream with a hole in it is of no use to anybody. */
  lose(directions: readonly Direction[]): void {
    for (const direction of directions) this.lost.add(direction)
  }

  cut(): void {
    for (const socket of [this.near, this.far]) {
      // A reset of one that is being shut down fails, and leaves a handle behind that holds the process for ever.
      if (socket.connecting || socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }

  private read(chunk: Buffer): void {
    for (const statement of this.frontend.read(chunk)) {
      this.proxy.sent.push(statement)
      if (this.proxy.mute?.test(statement)) this.lose(BOTH)
    }
  }

  /** What is handed to it happens after the delay, in order; the end of one side is handed on as well. */
  private pipe(from: Socket, to: Socket, direction: Direction): (act: () => void) => void {
    let lastAt = 0
    const later = (act: () => void): void => {
      const now = performance.now()
      const at = Math.max(lastAt, now + this.proxy.delayMs)
      lastAt = at
      if (at <= now) act()
      else setTimeout(act, at - now)
    }
    from.on('end', () => this.lost.has(direction) || later(() => to.end()))
    return later
  }
}

/** Reads the client's side of the protocol: which statements it sends. */
class Frontend {
  private rest: Buffer = Buffer.alloc(0)
  private started = false

  /** The names, or else texts, of the statements that this chunk completes. */
  read(chunk: Buffer): string[] {
    this.rest = Buffer.concat([this.rest, chunk])
    const found: string[] = []
    for (;;) {
      // The first message, and the question whether there is TLS, have no type.
      const head = this.started ? 1 : 0
      if (this.rest.length < head + 4) return found
      const end = head + this.rest.readInt32BE(head)
      if (this.rest.length < end) return found
      const body = this.rest.subarray(head + 4, end)
      const statement = this.started ? statementOf(String.fromCharCode(this.rest[0]!), body) : undefined
      if (statement !== undefined) found.push(statement)
      this.started ||= end > 8
      this.rest = this.rest.subarray(end)
    }
  }
}

function statementOf(type: string, body: Buffer): string | undefined {
  const [first = '', second = ''] = body.toString('latin1').split('\0', 2)
  if (type === 'Q') return first
  // A statement without a name was sent in full just before; one with a name may be known from an earlier time.
  if (type === 'P') return first === '' ? second : undefined
  return type === 'B' && second !== '' ? second : undefined
}

function partsOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}

/** Numbers that look random and are the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
