// The button that stops a run of a coding agent.
import { getAgentLabel } from '../../data/coding-agents.ts'
import { Icon } from '../../design/icon.tsx'
import { SquareIcon } from '../../design/icons.ts'
import type { Action } from '../use-action.ts'

export type StopButtonProps = {
  provider: string
  /** Has the error, which the caller shows. */
  action: Action
  stop(): Promise<void>
  /** Of the button, if there are several on the page. */
  label?: string
}

export function StopButton({ provider, action, stop, label }: StopButtonProps) {
  const isBusy = action.isBusy.value
  return (
    <button
      type="button"
      disabled={isBusy}
      aria-label={label ?? `Stop ${getAgentLabel(provider)}`}
      onClick={() => void action.run(stop)}
    >
      <Icon of={SquareIcon} size={14} />
      {isBusy ? 'Stopping' : 'Stop'}
    </button>
  )
}
