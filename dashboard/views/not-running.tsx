// What a page shows that needs a running box, while the box does not run.
import type { Box } from '../../shared/api/boxes.ts'
import { formatState } from '../data/items.ts'
import { BoxActions } from './box-actions.tsx'
import { Command } from './command.tsx'

/** @param subject such as "Files" */
export function NotRunning({ box, subject }: { box: Box; subject: string }) {
  return (
    <>
      <p role="status">
        {subject} need a running box. The state of this box is{' '}
        <span class={`state ${box.observedState}`}>{formatState(box.observedState)}</span>.
      </p>
      <BoxActions box={box} />
      <p>
        <Command text={`box wake ${box.hostname}`} />
      </p>
    </>
  )
}
