/** `leasehold jobs explain`: why a job does not run. Called by the declarations in syntax/. */
import type { Answer } from '../answer.js'
import { explanationDocument } from '../documents.js'
import { explanationPage } from '../explanation-page.js'
import type { Invocation } from '../invocation.js'
import { known } from './jobs-show.js'

export async function jobsExplain(invocation: Invocation, id: string): Promise<Answer> {
  const queue = await invocation.store()
  const explanation = known(await queue.explain(id), id)
  return { document: explanationDocument(explanation), text: (view) => explanationPage(explanation, view) }
}
