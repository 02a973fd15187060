// A live change may remove the element that has the focus, such as a button that a state does not have. Then the focus moves
// to what is left of its group or row, or to the heading of the page.
import { focusHeading } from './focus-heading.ts'

const GROUPS = '.actions, tr, form, section'
const FOCUSABLE = 'button:not(:disabled), a[href], input:not(:disabled), select:not(:disabled)'

/** Returns a function that stops. */
export function keepFocus(): () => void {
  let focused: Element | null = null
  let groups: Element[] = []
  const onFocus = ({ target }: FocusEvent) => {
    if (!(target instanceof Element)) return
    focused = target
    groups = []
    for (let group = target.closest(GROUPS); group; group = group.parentElement?.closest(GROUPS) ?? null)
      groups.push(group)
  }
  const observer = new MutationObserver(() => {
    if (focused === null || focused.isConnected || document.activeElement !== document.body) return
    const group = groups.find(({ isConnected }) => isConnected)
    const next = group?.querySelector<HTMLElement>(FOCUSABLE)
    focused = null
    if (next) next.focus()
    else focusHeading()
  })
  document.addEventListener('focusin', onFocus)
  observer.observe(document.body, { childList: true, subtree: true })
  return () => {
    observer.disconnect()
    document.removeEventListener('focusin', onFocus)
  }
}
