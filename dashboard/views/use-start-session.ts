// Starts a terminal session of a box, and opens its page.
import type { Box } from '../../shared/api/boxes.ts'
import type { TerminalStart } from '../../shared/api/terminal.ts'
import { navigate } from '../data/navigation.ts'
import { formatSessionPath, startSession } from '../data/terminal-sessions.ts'
import { type Action, useAction } from './use-action.ts'

export type StartSession = Omit<Action, 'run'> & { start(request: TerminalStart): Promise<boolean> }

export function useStartSession({ id, hostname }: Box): StartSession {
  const { run, ...state } = useAction()
  return {
    ...state,
    start: (request) =>
      run(async () => navigate(formatSessionPath(hostname, (await startSession(id, request)).session))),
  }
}
