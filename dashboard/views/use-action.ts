// What a button does: once at a time, with the error of its last run.
import { type Signal, useSignal } from '@preact/signals'
import type { BoxwoodError } from '../../client/http/errors.ts'
import { toBoxwoodError } from '../api/errors.ts'

export type Action = {
  isBusy: Signal<boolean>
  error: Signal<BoxwoodError | null>
  /** Returns whether it has succeeded. Does nothing while an earlier run has not ended. */
  run(act: () => Promise<unknown>): Promise<boolean>
}

export function useAction(): Action {
  const isBusy = useSignal(false)
  const error = useSignal<BoxwoodError | null>(null)
  return {
    isBusy,
    error,
    async run(act) {
      if (isBusy.value) return false
      isBusy.value = true
      error.value = null
      try {
        await act()
        return true
      } catch (reason) {
        error.value = toBoxwoodError(reason)
        return false
      } finally {
        isBusy.value = false
      }
    },
  }
}
