// Shows a long list in slices, so that the page responds while it is rendered.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** More rows than a screen has. */
const FIRST_SLICE = 30
/** Rows that are rendered in less than 50 ms, so that the page responds to input. */
const SLICE = 90

/** How many of the items are shown. It grows until all are. */
export function useSlices(count: number): number {
  const limit = useSignal(FIRST_SLICE)
  const shown = Math.min(limit.value, count)
  useEffect(() => {
    if (shown === count) return
    // Not in an animation frame, which a hidden tab does not have.
    const timer = setTimeout(() => {
      limit.value += SLICE
    })
    return () => clearTimeout(timer)
  }, [shown, count])
  return shown
}
