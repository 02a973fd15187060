// Whether the tab is shown. A tab that is hidden for some seconds closes its streams.
import { signal } from '@preact/signals'

const HIDDEN_MS = 5_000

export const isVisible = signal(true)

let timer: ReturnType<typeof setTimeout> | undefined
function update(): void {
  clearTimeout(timer)
  if (document.visibilityState === 'visible') isVisible.value = true
  else
    timer = setTimeout(() => {
      isVisible.value = false
    }, HIDDEN_MS)
}

if (typeof document !== 'undefined') {
  document.addEventListener('visibilitychange', update)
  update()
}
