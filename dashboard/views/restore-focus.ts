// Moves the focus after a dialog was removed from the page: elements outside of an open dialog cannot have it.
import { focusHeading } from './focus-heading.ts'

/**
 * Call before the dialog opens. The returned function moves the focus to the element that had it, or to the heading.
 * @param isRemoved whether the action removes the element from the page
 */
export function saveFocus(): (isRemoved: boolean) => void {
  const element = document.activeElement
  return (isRemoved) =>
    void requestAnimationFrame(() => {
      if (!isRemoved && element instanceof HTMLElement && element.isConnected) element.focus()
      else focusHeading()
    })
}
