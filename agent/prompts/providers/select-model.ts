// Splits the model of a request at the prefix of a backend (spec §4.16).
import { BACKENDS } from '../../../shared/field-values.ts'
import type { ModelSelection } from './types.ts'

/** null: the default model of the CLI. A prefix without a name selects no backend. */
export function selectModel(model: string | null): ModelSelection | null {
  if (model === null) return null
  for (const backend of BACKENDS) {
    const prefix = `${backend}/`
    if (model.startsWith(prefix) && model.length > prefix.length)
      return { full: model, backend, name: model.slice(prefix.length) }
  }
  return { full: model, backend: null, name: model }
}
