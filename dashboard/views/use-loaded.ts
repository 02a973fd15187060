// Loads a value for a view. The last value stays while the next one is loaded, and after an error.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { type RequestError, toRequestError } from '../api/errors.ts'

export type Loaded<Value> = { value: Value | null; error: RequestError | null }

/** @param deps the value is loaded again when one of them is another one. A response that is not for the last ones is ignored */
export function useLoaded<Value>(load: () => Promise<Value>, deps: readonly unknown[]): Loaded<Value> {
  const state = useSignal<Loaded<Value>>({ value: null, error: null })
  useEffect(() => {
    let isCurrent = true
    load().then(
      (value) => {
        if (isCurrent) state.value = { value, error: null }
      },
      (reason) => {
        if (isCurrent) state.value = { value: state.peek().value, error: toRequestError(reason) }
      },
    )
    return () => {
      isCurrent = false
    }
  }, deps)
  return state.value
}
