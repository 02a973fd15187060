// How a command ended, as an icon and a text.
import type { Command } from '../../shared/api/commands.ts'
import { formatResult, getResultClass } from '../data/command-list.ts'
import { showHidden } from '../data/visible-text.ts'
import { Icon } from '../design/icon.tsx'
import { FailedIcon, SucceededIcon, UnknownIcon, WorkingIcon } from '../design/icons.ts'

export function Result({ command }: { command: Command }) {
  return (
    <span class={getResultClass(command)}>
      <Icon of={getIcon(command)} />
      {showHidden(formatResult(command))}
    </span>
  )
}

function getIcon({ status, exitCode }: Command) {
  if (status === 'running') return WorkingIcon
  if (status === 'lost') return UnknownIcon
  return exitCode === 0 ? SucceededIcon : FailedIcon
}
