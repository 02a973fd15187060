// The button that ends a terminal session, after a question.

import { useSignal } from '@preact/signals'
import type { Box } from '../../shared/api/boxes.ts'
import { formatCommandLine } from '../data/command-line.ts'
import { endSession } from '../data/terminal-sessions.ts'
import { showHidden } from '../data/visible-text.ts'
import { Commands } from './command.tsx'
import { Problem } from './problem.tsx'
import { Question } from './question.tsx'
import { useAction } from './use-action.ts'

/** @param props.onEnd called when the programs are terminated */
export function EndSession({ box, session, onEnd }: { box: Box; session: string; onEnd(): void }) {
  const isAsking = useSignal(false)
  const { error, run } = useAction()
  const close = () => {
    isAsking.value = false
  }
  const end = () => {
    close()
    void run(async () => {
      await endSession(box.id, session)
      onEnd()
    })
  }
  return (
    <>
      <button
        type="button"
        aria-label={`End the session ${showHidden(session)}`}
        onClick={() => {
          isAsking.value = true
        }}
      >
        End
      </button>
      <Problem error={error.value} />
      {isAsking.value && (
        <Question
          title={`End the session ${showHidden(session)}?`}
          label="End the session"
          onClose={close}
          onAccept={end}
        >
          <p>Its programs are terminated, for all viewers.</p>
          <p>
            <Commands texts={[formatCommandLine('box', 'sessions', box.hostname, '--kill', session)]} />
          </p>
        </Question>
      )}
    </>
  )
}
