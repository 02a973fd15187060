// A modal dialog that is open while its component is mounted.
import { useLayoutEffect, useRef } from 'preact/hooks'
import { focusHeading } from './focus-heading.ts'

/**
 * Shows the dialog while its component is mounted. Then the focus returns to the element that had it.
 * @param onClose called when the user closes the dialog, and never after the component was unmounted: the browser sends the event
 * of a closed dialog later, when the next dialog may be open
 */
export function useModal(onClose: () => void) {
  const dialog = useRef<HTMLDialogElement>(null)
  const callback = useRef(onClose)
  callback.current = onClose
  useLayoutEffect(() => {
    const element = dialog.current
    const opener = document.activeElement
    const onDialogClose = () => callback.current()
    element?.addEventListener('close', onDialogClose)
    element?.showModal()
    return () => {
      element?.removeEventListener('close', onDialogClose)
      // Everything outside of an open modal dialog cannot have the focus.
      element?.close()
      if (opener instanceof HTMLElement && opener !== document.body && opener.isConnected) opener.focus()
      else focusHeading()
    }
  }, [])
  return dialog
}
