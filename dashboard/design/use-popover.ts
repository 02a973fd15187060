// A popover of the browser below its button. Its content exists only while it is open.
import { type Signal, useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'

export type Popover = {
  isOpen: Signal<boolean>
  buttonRef: RefObject<HTMLButtonElement | null>
  panelRef: RefObject<HTMLDivElement | null>
  /** Attributes of the button. */
  button: { popovertarget: string; 'aria-expanded': boolean }
  /** Attributes of the element with the content. */
  panel: { id: string; popover: 'auto'; onToggle(event: { newState: string }): void }
  close(): void
}

const GAP = 4

/** @param onOpen is called when the content is shown */
export function usePopover(onOpen?: () => void): Popover {
  const id = useId()
  const isOpen = useSignal(false)
  const buttonRef = useRef<HTMLButtonElement>(null)
  const panelRef = useRef<HTMLDivElement>(null)
  const isShown = isOpen.value
  useLayoutEffect(() => {
    if (!isShown) return
    move(buttonRef.current, panelRef.current)
    onOpen?.()
  }, [isShown])
  return {
    isOpen,
    buttonRef,
    panelRef,
    button: { popovertarget: id, 'aria-expanded': isShown },
    panel: {
      id,
      popover: 'auto',
      onToggle({ newState }) {
        isOpen.value = newState === 'open'
      },
    },
    // The browser returns the focus to the button.
    close: () => panelRef.current?.hidePopover(),
  }
}

/** Below the button, or above it where there is no room; at its left edge, or at its right one. */
function move(button: HTMLElement | null, panel: HTMLElement | null): void {
  if (button === null || panel === null) return
  const anchor = button.getBoundingClientRect()
  const { width, height } = panel.getBoundingClientRect()
  const left = anchor.left + width > innerWidth - GAP ? anchor.right - width : anchor.left
  const below = anchor.bottom + GAP
  const top = below + height > innerHeight ? anchor.top - GAP - height : below
  panel.style.left = `${Math.max(GAP, left)}px`
  panel.style.top = `${Math.max(GAP, top)}px`
}
