// Whether terminals are drawn with WebGL. The browser keeps the choice for all boxes.
import { signal } from '@preact/signals'

const KEY = 'boxwood.terminal.webgl'

export const usesWebgl = signal(readChoice())

export function setUsesWebgl(isChosen: boolean): void {
  usesWebgl.value = isChosen
  try {
    if (isChosen) localStorage.setItem(KEY, 'on')
    else localStorage.removeItem(KEY)
  } catch {
    // The browser blocks the storage: the choice is kept until the document is left.
  }
}

function readChoice(): boolean {
  try {
    return localStorage.getItem(KEY) === 'on'
  } catch {
    return false
  }
}
