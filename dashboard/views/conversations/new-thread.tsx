// What the page shows while no conversation is selected: the coding agents, and the field for the first prompt of a new one.

import { navigate } from '../../data/navigation.ts'
import { formatConversationPath } from '../../data/routes.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { BotIcon } from '../../design/icons.ts'
import { Agents } from './agents.tsx'
import { Compose } from './compose.tsx'
import type { ThreadProps } from './thread.tsx'

const SUGGESTIONS = [
  'Explain what is in this directory.',
  'Run the tests, and fix what fails.',
  'Write a small web page and serve it on port 3000.',
] as const

export function NewThread({ box, boxPrompts, agents, reloadAgents }: ThreadProps) {
  const { value } = boxPrompts.lists
  const draft = boxPrompts.getDraft(null)
  const isFirst = value?.conversations.conversations.length === 0
  return (
    <>
      <div class="thread-body">
        {isFirst ? (
          <EmptyState icon={BotIcon} title="Give a coding agent a task">
            <p>
              It works on the box, with its files and programs, also while this page is closed. Here you see
              what it does, answer it, and stop it.
            </p>
            <p class="buttons">
              {SUGGESTIONS.map((text) => (
                <button
                  key={text}
                  type="button"
                  onClick={() => {
                    draft.value = text
                    document.querySelector<HTMLElement>('.compose textarea')?.focus()
                  }}
                >
                  {text}
                </button>
              ))}
            </p>
          </EmptyState>
        ) : (
          <h2>New conversation</h2>
        )}
        <Agents box={box} agents={agents} reload={reloadAgents} />
      </div>
      <Compose
        boxName={box.hostname}
        boxPrompts={boxPrompts}
        conversation={null}
        agents={agents}
        running={undefined}
        queued={[]}
        onSent={(id) => navigate(formatConversationPath(box.hostname, id))}
      />
    </>
  )
}
