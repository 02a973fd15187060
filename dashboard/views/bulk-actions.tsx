// Actions on the chosen boxes, each after a confirmation that lists them.
import { useSignal } from '@preact/signals'
import type { Box } from '../../shared/api/boxes.ts'
import { type Failure, runForEach } from '../data/batch.ts'
import { formatCommandLine } from '../data/command-line.ts'
import { listActions } from '../data/items.ts'
import { getClient } from '../data/live.ts'
import { showHidden } from '../data/visible-text.ts'
import { type DialogProps, useDialog } from './use-dialog.tsx'

const ACTIONS = {
  wake: { label: 'Wake', command: 'wake', done: 'being woken' },
  suspend: { label: 'Suspend', command: 'suspend', done: 'being suspended' },
  delete: { label: 'Delete', command: 'rm', done: 'being deleted' },
} as const
type BulkAction = keyof typeof ACTIONS

export function BulkActions({ selected, clear }: { selected: readonly Box[]; clear(): void }) {
  const dialog = useDialog()
  const message = useSignal('')
  const failures = useSignal<readonly Failure<Box>[]>([])
  const onDone = (text: string, failed: readonly Failure<Box>[]) => {
    message.value = text
    failures.value = failed
    clear()
  }
  return (
    <div class="tools">
      <span role="status">{selected.length > 0 ? `${selected.length} chosen` : message}</span>
      {selected.length > 0 &&
        (Object.keys(ACTIONS) as BulkAction[]).map((action) => {
          const items = selected.filter((box) => listActions(box).includes(action))
          return (
            <button
              key={action}
              type="button"
              disabled={items.length === 0}
              onClick={() => dialog.open(createDialog(action, items, onDone))}
            >
              {ACTIONS[action].label} {items.length}
            </button>
          )
        })}
      {failures.value.length > 0 && (
        <ul role="alert">
          {failures.value.map(({ item, error }) => (
            <li key={item.id} class="problem">
              {showHidden(item.hostname)}: {showHidden(error.message)} <code>{error.code}</code>
            </li>
          ))}
        </ul>
      )}
      {dialog.view}
    </div>
  )
}

function createDialog(
  action: BulkAction,
  items: readonly Box[],
  onDone: (text: string, failures: readonly Failure<Box>[]) => void,
): DialogProps {
  const { label, command, done } = ACTIONS[action]
  const names = items.map(({ hostname }) => hostname)
  const count = String(items.length)
  const client = getClient()
  const run = { wake: client.wakeBox, suspend: client.suspendBox, delete: client.deleteBox }[action]
  return {
    title: `${label} ${items.length === 1 ? 'a box' : `${count} boxes`}`,
    children: (
      <ul class="choices">
        {names.map((name) => (
          <li key={name}>{showHidden(name)}</li>
        ))}
      </ul>
    ),
    fields:
      action === 'delete'
        ? [{ name: 'count', label: `Type ${count}, their number, to delete the boxes and their files` }]
        : [],
    submitLabel: label,
    accepts: (values) => action !== 'delete' || values.count === count,
    formatCommand: () => formatCommandLine('box', command, ...names),
    async submit() {
      const failures = await runForEach(items, ({ id }) => run(id))
      onDone(`${items.length - failures.length} of ${count} are ${done}.`, failures)
    },
  }
}
