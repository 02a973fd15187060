// Connects the terminal emulator to a session, as long as a view shows it.
import { type Signal, useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { createRandomId } from '../../client/http/calls.ts'
import type { Box } from '../../shared/api/boxes.ts'
import { openTerminal, type TerminalConnection, type TerminalState } from '../api/terminal-connection.ts'
import { getBoxClient } from '../data/box-clients.ts'
import { losses } from '../data/live.ts'
import { terminalFontSize } from '../data/preferences.ts'
import { storeClientId, takeClientId } from '../data/terminal-clients.ts'
import { checkSession } from '../data/terminal-sessions.ts'
import { openTerminalSocket } from '../data/terminal-socket.ts'
import { addCtrl, isEnded, preparePaste } from '../data/terminal-text.ts'
import { isVisible } from '../data/visibility.ts'
import { createEmulator, type Emulator, type EmulatorOptions, type ScreenKey } from './xterm.ts'

export type TerminalHook = {
  /** Of the element that the emulator fills. */
  element: RefObject<HTMLDivElement | null>
  state: TerminalState
  focus(): void
  paste(text: string): void
  press(key: ScreenKey): void
  /** The next letter is typed with Ctrl. */
  hasCtrl: Signal<boolean>
  attachAgain(): void
}

type TerminalHookOptions = Pick<EmulatorOptions, 'onPaste' | 'onLink' | 'onLeave'> & {
  box: Box
  session: string
}

export function useTerminal({ box, session, onPaste, onLink, onLeave }: TerminalHookOptions): TerminalHook {
  const { id: boxId } = box
  const element = useRef<HTMLDivElement>(null)
  const emulator = useRef<Emulator | null>(null)
  const connection = useRef<TerminalConnection | null>(null)
  const state = useSignal<TerminalState>({ type: 'connecting' })
  const hasCtrl = useSignal(false)
  const fitting = useRef(() => {})
  const focus = () => emulator.current?.focus()

  useEffect(() => {
    if (element.current === null) return
    const shown = createEmulator({
      element: element.current,
      fontSize: terminalFontSize.peek(),
      onInput(text) {
        fit()
        current.write(hasCtrl.peek() ? addCtrl(text) : text)
        hasCtrl.value = false
      },
      onPaste,
      onLink,
      onLeave,
    })
    const store = getSessionStorage()
    const client = takeClientId(store, boxId, session) ?? createRandomId()
    const size = shown.getFittingSize()
    if (size !== null) shown.setSize(size)
    const current = openTerminal({
      session,
      client,
      size,
      connect: (query, handlers, signal) => openTerminalSocket(getBoxClient(boxId), query, handlers, signal),
      checkSession: (name) => checkSession(boxId, name),
      sink: shown.sink,
      onState(next) {
        state.value = next
        shown.setEnabled(!isEnded(next))
      },
    })
    emulator.current = shown
    connection.current = current
    const fit = () => {
      const size = shown.getFittingSize()
      const { cols, rows } = shown.getSize()
      if (size === null || (size.cols === cols && size.rows === rows)) return
      shown.setSize(size)
      current.resize(size)
    }
    fitting.current = fit
    shown.focus()

    let frame = 0
    const observer = new ResizeObserver(() => {
      cancelAnimationFrame(frame)
      frame = requestAnimationFrame(fit)
    })
    observer.observe(element.current)
    // Another viewer may have given the session its own size: it has that of the last viewer who used it.
    element.current.addEventListener('focusin', fit)
    element.current.addEventListener('pointerdown', fit)
    const reconnect = () => current.reconnect()
    const leavePage = () => storeClientId(store, boxId, session, client)
    window.addEventListener('online', reconnect)
    window.addEventListener('pagehide', leavePage)
    // A page that the browser has kept continues with its own id.
    const returnToPage = () => void takeClientId(store, boxId, session)
    window.addEventListener('pageshow', returnToPage)
    return () => {
      cancelAnimationFrame(frame)
      observer.disconnect()
      window.removeEventListener('online', reconnect)
      window.removeEventListener('pagehide', leavePage)
      window.removeEventListener('pageshow', returnToPage)
      current.detach()
      shown.dispose()
    }
  }, [])

  const visible = isVisible.value
  useEffect(() => {
    if (visible) connection.current?.resume()
    else connection.current?.pause()
  }, [visible])
  // The socket may be lost without a notice.
  const lossCount = losses.value
  const knownLosses = useRef(lossCount)
  useEffect(() => {
    if (knownLosses.current !== lossCount) connection.current?.reconnect()
    knownLosses.current = lossCount
  }, [lossCount])

  const fontSize = terminalFontSize.value
  useEffect(() => {
    emulator.current?.setFontSize(fontSize)
    fitting.current()
  }, [fontSize])

  const attachAgain = () => {
    connection.current?.reopen()
    focus()
  }
  // The programs of a box that was frozen continue when it runs again.
  const waitsForBox = state.value.type === 'failed' && state.value.error.code === 'box_not_running'
  const isRunning = box.observedState === 'running'
  useEffect(() => {
    if (waitsForBox && isRunning) connection.current?.reopen()
  }, [waitsForBox, isRunning])

  return {
    element,
    state: state.value,
    focus,
    paste: (text) => emulator.current?.paste(preparePaste(text)),
    press: (key) => emulator.current?.press(key),
    hasCtrl,
    attachAgain,
  }
}

/** Null: the browser blocks it. */
function getSessionStorage(): Storage | null {
  try {
    return sessionStorage
  } catch {
    return null
  }
}
