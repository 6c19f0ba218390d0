// Job: the client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677): proves the password and checks the server's proof.
// Called by: query.ts.
import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const ITERATIONS_MAX = 1_000_000 // a false server must not keep us counting for ever

/** One exchange: send `first`, answer the server's challenge with `answer()`, hand its last word to `verify()`. */
export interface ScramExchange {
  first: string
  answer(challenge: string): Promise<string>
  /** True when the server knows the password too, so it is ours and not a stranger on our old port. */
  verify(final: string): boolean
}

export function startScram(password: string): ScramExchange {
  const nonce = randomBytes(18).toString('base64')
  const bare = `n=,r=${nonce}`
  let expected: Buffer | undefined
  return {
    first: `n,,${bare}`,
    async answer(challenge) {
      const { serverNonce, salt, iterations } = readChallenge(challenge, nonce)
      const salted = await promisify(pbkdf2)(password, salt, iterations, 32, 'sha256')
      const withoutProof = `c=biws,r=${serverNonce}`
      const signed = `${bare},${challenge},${withoutProof}`
      const clientKey = hmac(salted, 'Client Key')
      const signature = hmac(createHash('sha256').update(clientKey).digest(), signed)
      expected = hmac(hmac(salted, 'Server Key'), signed)
      return `${withoutProof},p=${xor(clientKey, signature).toString('base64')}`
    },
    verify(final) {
      const proof = Buffer.from(attribute(final, 'v') ?? '', 'base64')
      return expected !== undefined && proof.length === expected.length && timingSafeEqual(proof, expected)
    },
  }
}

function readChallenge(challenge: string, nonce: string) {
  const serverNonce = attribute(challenge, 'r') ?? ''
  const salt = Buffer.from(attribute(challenge, 's') ?? '', 'base64')
  const iterations = Number(attribute(challenge, 'i'))
  const sane = Number.isInteger(iterations) && iterations > 0 && iterations <= ITERATIONS_MAX
  if (!serverNonce.startsWith(nonce) || serverNonce === nonce || salt.length === 0 || !sane) {
    throw new Error('the server sent a malformed SCRAM challenge')
  }
  return { serverNonce, salt, iterations }
}

function attribute(message: string, name: string): string | undefined {
  const part = message.split(',').find((piece) => piece.startsWith(`${name}=`))
  return part?.slice(2)
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

function xor(left: Buffer, right: Buffer): Buffer {
  return Buffer.from(left.map((byte, index) => byte ^ (right[index] ?? 0)))
}
