/** The network of the form `cut`: what it is told to lose is lost, in that direction only, and nobody is told. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { TcpProxy } from '../support/proxy.js'
import { until } from '../support/until.js'

/** Says back what it hears, with a mark; remembers what it heard. */
const heard: string[] = []
const sockets = new Set<Socket>()
const server = createServer((socket) => {
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    heard.push(String(chunk))
    socket.write(`answer to ${chunk}`)
  })
})
let proxy: TcpProxy
before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  proxy = await TcpProxy.to(`postgres://127.0.0.1:${port}/x`, { read: 'not' })
})
after(async () => {
  await proxy.close()
  for (const socket of sockets) socket.destroy()
  server.close()
})

class Client {
  readonly got: string[] = []
  ended = false

  private constructor(private readonly socket: Socket) {
    socket.on('data', (chunk) => this.got.push(String(chunk)))
    socket.on('close', () => {
      this.ended = true
    })
    socket.on('error', () => {})
  }

  static async open(): Promise<Client> {
    const { hostname, port } = new URL(proxy.url)
    const socket = connect({ host: hostname, port: Number(port) })
    await once(socket, 'connect')
    return new Client(socket)
  }

  say(text: string): void {
    this.socket.write(text)
  }

  async asks(text: string): Promise<void> {
    this.say(text)
    await until(`an answer to ${text}`, () => this.got.includes(`answer to ${text}`))
  }
}

test('lost requests: the server hears nothing; a new connection does no better until it is over', async () => {
  const client = await Client.open()
  await client.asks('one')
  proxy.lose(['requests'])
  client.say('two')
  const second = await Client.open()
  second.say('three')
  proxy.lose([])
  const third = await Client.open()
  await third.asks('four')
  assert.deepEqual(heard.splice(0), ['one', 'four'])
  assert.equal(client.ended, false, 'it is half open, and nobody is told')
  client.say('five')
  await third.asks('six')
  assert.deepEqual(heard.splice(0), ['six'], 'a connection with a hole in it stays lost')
})

test('lost answers: the server does what it is asked, and nobody hears of it', async () => {
  const client = await Client.open()
  proxy.lose(['answers'])
  client.say('seven')
  await until('the server has heard it', () => heard.includes('seven'))
  proxy.lose([])
  const next = await Client.open()
  await next.asks('eight')
  assert.deepEqual(client.got, [])
  proxy.halfOpen()()
  await until('it was found out', () => client.ended)
  await next.asks('nine')
  assert.equal(next.ended, false)
})
