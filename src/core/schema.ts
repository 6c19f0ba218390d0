/** Runs a Standard Schema validator (zod, valibot, arktype, …) and words its refusals. Called by kinds. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type ErrorCode, QueueError } from './errors.js'
import { type Check, invalidOption } from './options.js'

const ISSUES_TOLD_MAX = 5

/** What is validated, for the message, and the code of the refusal. */
export interface Subject {
  noun: 'payload' | 'result'
  code: ErrorCode
}

/** The output of the schema; a promise where the schema is asynchronous. Throws (or rejects with) the subject's code. */
export function validate<Out>(
  schema: StandardSchemaV1<unknown, Out>,
  value: unknown,
  subject: Subject,
): Out | Promise<Out> {
  try {
    const answer = schema['~standard'].validate(value)
    if (!('then' in answer)) return outputOf(answer, subject)
    return answer.then(
      (result) => outputOf(result, subject),
      (error: unknown) => Promise.reject(schemaThrew(error, subject)),
    )
  } catch (error) {
    throw error instanceof QueueError ? error : schemaThrew(error, subject)
  }
}

function outputOf<Out>(result: StandardSchemaV1.Result<Out>, subject: Subject): Out {
  if (!result.issues) return result.value
  const told = result.issues.slice(0, ISSUES_TOLD_MAX).map((issue) => `${pathOf(issue, subject)}: ${issue.message}`)
  const more = result.issues.length - told.length
  const field = result.issues[0] === undefined ? subject.noun : pathOf(result.issues[0], subject)
  throw new QueueError(subject.code, `${told.join('; ')}${more > 0 ? `; and ${more} more` : ''}`, { field })
}

/** A step of a path is a key or `{ key }`, as each validator likes. */
function pathOf(issue: StandardSchemaV1.Issue, subject: Subject): string {
  const steps = (issue.path ?? []).map((step) => (typeof step === 'object' ? step.key : step))
  return subject.noun + steps.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
}

function schemaThrew(error: unknown, subject: Subject): QueueError {
  return new QueueError(subject.code, `${subject.noun}: its schema threw`, { cause: error, field: subject.noun })
}

/** An option that takes a Standard Schema; some libraries make them functions. */
export const schema: Check<StandardSchemaV1, StandardSchemaV1> = (value, field) => {
  const candidate = value as Partial<StandardSchemaV1> | null | undefined
  if (typeof candidate?.['~standard']?.validate === 'function') return candidate as StandardSchemaV1
  throw invalidOption(field, value, 'a Standard Schema, as zod, valibot and arktype make them')
}
