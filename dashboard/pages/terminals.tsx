// The terminal sessions of a box: start one, attach to one, or end one. A session has an address, which other viewers open too.
import type { Box } from '../../shared/api/boxes.ts'
import { query } from '../data/navigation.ts'
import { lazy } from '../views/lazy.tsx'
import { TerminalSessions } from '../views/terminal-sessions.tsx'

const TerminalView = lazy(async () => (await import('../views/terminal-view.tsx')).TerminalView)

export function TerminalsPage({ box }: { box: Box }) {
  const session = new URLSearchParams(query.value).get('session')
  return session === null ? (
    <TerminalSessions key={box.id} box={box} />
  ) : (
    <TerminalView key={`${box.id} ${session}`} box={box} session={session} />
  )
}
