// A live change may remove or disable the element that has the focus, such as a button that a state does not have. Then the
// focus moves to what is left of its group or row, or to the heading of the page.
import { focusHeading } from './focus-heading.ts'

const GROUPS = '.actions, tr, form, section'
const FOCUSABLE =
  'button:not(:disabled), a[href], input:not(:disabled), select:not(:disabled), textarea:not(:disabled)'

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
    if (focused === null || (focused.isConnected && !focused.matches(':disabled'))) return
    // A disabled element keeps the focus until the next frame.
    const { activeElement } = document
    if (activeElement !== document.body && activeElement !== focused) return
    focused = null
    const group = groups.find(({ isConnected }) => isConnected)
    for (const next of group?.querySelectorAll<HTMLElement>(FOCUSABLE) ?? []) {
      next.focus()
      // An element that is not displayed does not get it.
      if (document.activeElement === next) return
    }
    focusHeading()
  })
  document.addEventListener('focusin', onFocus)
  observer.observe(document.body, {
    childList: true,
    subtree: true,
    attributes: true,
    attributeFilter: ['disabled'],
  })
  return () => {
    observer.disconnect()
    document.removeEventListener('focusin', onFocus)
  }
}
