// Shows a long list in slices, so that the page responds while it is rendered.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** Rows that are rendered in a few milliseconds, and more than a screen has. */
const SLICE = 50

/** How many of the items are shown. It grows with each frame until all are. */
export function useSlices(count: number): number {
  const limit = useSignal(SLICE)
  const shown = Math.min(limit.value, count)
  useEffect(() => {
    if (shown === count) return
    // A hidden tab has no frames.
    const timer = setTimeout(() => {
      limit.value += SLICE
    })
    return () => clearTimeout(timer)
  }, [shown, count])
  return shown
}
