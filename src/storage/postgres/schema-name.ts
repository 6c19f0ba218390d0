/** The schema's name as it stands in statements. Called by index.ts and migrate.ts. */
import { createHash } from 'node:crypto'
import { QueueError } from '../../core/errors.js'

export interface SchemaName {
  /** As the user gave it. */
  readonly name: string
  /** Quoted, for statements. */
  readonly quoted: string
  /** Quoted, for the inside of a SQL string literal. */
  readonly inLiteral: string
  /** The channel of its hints: unquoted form and form for LISTEN. */
  readonly channel: string
}

export function schemaName(name: string): SchemaName {
  const bytes = Buffer.byteLength(name)
  if (bytes === 0 || bytes > 63 || name.includes('\0') || name.includes('$'))
    throw new QueueError(
      'INVALID_OPTION',
      `schema: ${JSON.stringify(name)} has to be 1 to 63 bytes without $ and NUL`,
      {
        field: 'schema',
      },
    )
  const quoted = `"${name.replaceAll('"', '""')}"`
  const plain = /^[a-z0-9_]{1,40}$/.test(name) ? name : createHash('sha256').update(name).digest('hex').slice(0, 32)
  return { name, quoted, inLiteral: quoted.replaceAll("'", "''"), channel: `leasehold_${plain}` }
}

/** A text as SQL says it, for statements that take no parameters. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** Puts the name into a text of migrations or functions. In one pass, as the name itself may look like a place for it. */
export function withSchema(text: string, schema: SchemaName): string {
  const values: Record<string, string> = {
    ':schema_text': schema.inLiteral,
    ':schema': schema.quoted,
    ':channel': schema.channel,
  }
  return text.replace(/:schema_text|:schema|:channel/g, (place) => values[place]!)
}
