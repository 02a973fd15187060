// Starts a terminal session of a box, and opens its page.
import { type Signal, useSignal } from '@preact/signals'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { TerminalStart } from '../../shared/api/terminal.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { navigate } from '../data/navigation.ts'
import { formatSessionPath, startSession } from '../data/terminal-sessions.ts'

export type StartSession = {
  isBusy: Signal<boolean>
  error: Signal<BoxwoodError | null>
  start(request: TerminalStart): Promise<void>
}

export function useStartSession({ id, hostname }: Box): StartSession {
  const isBusy = useSignal(false)
  const error = useSignal<BoxwoodError | null>(null)
  return {
    isBusy,
    error,
    async start(request) {
      if (isBusy.value) return
      isBusy.value = true
      error.value = null
      try {
        navigate(formatSessionPath(hostname, (await startSession(id, request)).session))
      } catch (reason) {
        error.value = toBoxwoodError(reason)
      } finally {
        isBusy.value = false
      }
    },
  }
}
