// What a request has loaded, with its age. It is loaded again when the tab becomes visible. The last value stays while the next
// one is loaded, and after an error.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { formatAge } from '../data/age.ts'
import { getCoordinatorTime, losses, now } from '../data/live.ts'
import { IconButton } from '../design/icon-button.tsx'
import { RefreshIcon } from '../design/icons.ts'
import { Problem } from './problem.tsx'

export type Loaded<Value> = {
  /** Null: not loaded yet. */
  value: Value | null
  error: BoxwoodError | null
  /** When the value was loaded, by the clock of the coordinator. */
  at: number
  reload(): Promise<void>
}

/**
 * @param inputs when one of them changes, the value is loaded again
 * @param intervalMs from a response to the next request, while the tab is visible
 */
export function useLoaded<Value>(
  load: () => Promise<Value>,
  inputs: readonly unknown[] = [],
  intervalMs?: number,
): Loaded<Value> {
  const state = useSignal<Omit<Loaded<Value>, 'reload'>>({ value: null, error: null, at: 0 })
  const attempt = useRef(0)
  async function reload() {
    attempt.current += 1
    const own = attempt.current
    // Only the response of the latest request counts.
    try {
      const value = await load()
      if (own === attempt.current) state.value = { value, error: null, at: getCoordinatorTime() }
    } catch (error) {
      if (own === attempt.current) state.value = { ...state.value, error: toBoxwoodError(error) }
    }
  }
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isCurrent = true
    const update = async () => {
      if (document.visibilityState === 'visible') await reload()
    }
    const wait = () => {
      if (isCurrent && intervalMs !== undefined)
        timer = setTimeout(() => void update().then(wait), intervalMs)
    }
    void reload().then(wait)
    document.addEventListener('visibilitychange', update)
    return () => {
      isCurrent = false
      attempt.current += 1
      document.removeEventListener('visibilitychange', update)
      clearTimeout(timer)
    }
  }, [...inputs, losses.value])
  return { ...state.value, reload }
}

/** The age of the value, a button that loads it again, and why the last request has failed. */
export function Freshness({
  loaded,
}: {
  loaded: Pick<Loaded<unknown>, 'value' | 'error' | 'at' | 'reload'>
}) {
  const { value, error, at, reload } = loaded
  return (
    <>
      <Problem error={error} />
      <p class="freshness">
        <small>{value === null ? (error ? '' : 'Loading.') : `As of ${formatAge(now.value - at)} ago`}</small>
        <IconButton icon={RefreshIcon} label="Load again" onClick={() => void reload()} />
      </p>
    </>
  )
}
