// The commands of a box: the history, which is readable while the box is suspended, and one command with its output.
import type { Box } from '../../shared/api/boxes.ts'
import { query } from '../data/navigation.ts'
import { CommandDetail } from '../views/command-detail.tsx'
import { CommandHistory } from '../views/command-history.tsx'

export function CommandsPage({ box }: { box: Box }) {
  const commandId = new URLSearchParams(query.value).get('command')
  return commandId === null ? (
    <CommandHistory key={box.id} box={box} />
  ) : (
    <CommandDetail key={commandId} box={box} commandId={commandId} />
  )
}
