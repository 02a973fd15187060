// The names of tool calls whose results have not been seen, in the mapper state. Results only repeat the id of the call.
import { arrayAt, stringAt } from './json-fields.ts'
import type { MapperState } from './types.ts'

const KEY = 'toolCalls'
/** More calls can be in progress only in parallel. The name of the oldest one is forgotten. */
const MAX_CALLS = 32
/** Bounds the state, also as JSON. A call with another id or name is not remembered. */
const ID_PATTERN = /^[\w.:-]{1,64}$/
const NAME_PATTERN = /^[\w.:@/-]{1,128}$/

export function rememberToolCall(state: MapperState, id: string | null, name: string | null): MapperState {
  if (id === null || name === null || !ID_PATTERN.test(id) || !NAME_PATTERN.test(name)) return state
  const others = arrayAt(state.data, KEY).filter((call) => stringAt(call, 'id') !== id)
  const calls = [...others, { id, name }].slice(-MAX_CALLS)
  return { ...state, data: { ...state.data, [KEY]: calls } }
}

/** Returns the name of the call, and removes the call from the state. null: the call is not remembered. */
export function takeToolCall(
  state: MapperState,
  id: string | null,
): { name: string | null; state: MapperState } {
  const calls = arrayAt(state.data, KEY)
  const call = calls.find((candidate) => stringAt(candidate, 'id') === id)
  if (id === null || call === undefined) return { name: null, state }
  const data = { ...state.data, [KEY]: calls.filter((other) => other !== call) }
  return { name: stringAt(call, 'name'), state: { ...state, data } }
}
