// The button that stops a run of a coding agent.
import { getAgentLabel } from '../../data/coding-agents.ts'
import { Icon } from '../../design/icon.tsx'
import { SquareIcon } from '../../design/icons.ts'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'

export type StopButtonProps = {
  provider: string
  stop(): Promise<void>
  /** Of the button, if there are several on the page. */
  label?: string
}

export function StopButton({ provider, stop, label }: StopButtonProps) {
  const { isBusy, error, run } = useAction()
  return (
    <>
      <button
        type="button"
        disabled={isBusy.value}
        aria-label={label ?? `Stop ${getAgentLabel(provider)}`}
        onClick={() => void run(stop)}
      >
        <Icon of={SquareIcon} size={14} />
        {isBusy.value ? 'Stopping' : 'Stop'}
      </button>
      {error.value !== null && <Problem error={error.value} />}
    </>
  )
}
