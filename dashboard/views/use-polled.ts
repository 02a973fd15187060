// Loads a value again and again while the tab is shown. The last value stays after an error.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { toRequestError } from '../api/errors.ts'
import { getCoordinatorTime, losses } from '../data/live.ts'
import { isVisible } from '../data/visibility.ts'
import type { Loaded } from './use-loaded.ts'

/** `loadedAt`: of the value, by the clock of the coordinator; null: there is no value. */
export type Polled<Value> = Loaded<Value> & { loadedAt: number | null; reload(): void }

/**
 * @param intervalMs from a response to the next request
 * @param deps the value is loaded again when one of them is another one
 */
export function usePolled<Value>(
  load: () => Promise<Value>,
  intervalMs: number,
  deps: readonly unknown[],
): Polled<Value> {
  const state = useSignal<Loaded<Value> & { loadedAt: number | null }>({
    value: null,
    error: null,
    loadedAt: null,
  })
  const round = useSignal(0)
  const visible = isVisible.value
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isCurrent = true
    async function poll(): Promise<void> {
      try {
        const value = await load()
        if (isCurrent) state.value = { value, error: null, loadedAt: getCoordinatorTime() }
      } catch (reason) {
        if (isCurrent) state.value = { ...state.peek(), error: toRequestError(reason) }
      }
      if (isCurrent) timer = setTimeout(poll, intervalMs)
    }
    if (visible) void poll()
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [...deps, round.value, visible, losses.value])
  return {
    ...state.value,
    reload() {
      round.value += 1
    },
  }
}
