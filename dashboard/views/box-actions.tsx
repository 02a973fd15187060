// The buttons of a box, with the dialogs of the actions that need values.
import { useSignal } from '@preact/signals'
import type { Box } from '../../shared/api/boxes.ts'
import { type RequestError, toRequestError } from '../api/errors.ts'
import { formatCommandLine } from '../data/command-line.ts'
import { type Action, listActions } from '../data/items.ts'
import { getClient } from '../data/live.ts'
import { focusHeading } from './focus-heading.ts'
import { FormDialog } from './form-dialog.tsx'
import { NextSteps } from './next-steps.tsx'
import { Problem } from './problem.tsx'

const LABELS: Record<Action, string> = {
  wake: 'Wake',
  suspend: 'Suspend',
  fork: 'Fork',
  snapshot: 'Snapshot',
  delete: 'Delete',
}

export function BoxActions({ box }: { box: Box }) {
  const { id, hostname: name } = box
  const open = useSignal<Action | null>(null)
  const message = useSignal('')
  const created = useSignal<string | null>(null)
  const error = useSignal<RequestError | null>(null)
  const client = getClient()
  const close = () => {
    open.value = null
  }
  async function run(action: Action) {
    error.value = null
    message.value = ''
    created.value = null
    if (action !== 'wake' && action !== 'suspend') {
      open.value = action
      return
    }
    try {
      await (action === 'wake' ? client.wakeBox(id) : client.suspendBox(id))
    } catch (reason) {
      error.value = toRequestError(reason)
    }
  }
  return (
    <div class="actions">
      {listActions(box).map((action) => (
        <button
          key={action}
          type="button"
          onClick={() => run(action)}
          aria-label={`${LABELS[action]} ${name}`}
        >
          {LABELS[action]}
        </button>
      ))}
      <span role="status">{message}</span>
      <Problem error={error.value} />
      {created.value !== null && <NextSteps name={created.value} />}
      {open.value === 'fork' && (
        <FormDialog
          title={`Fork ${name}`}
          fields={[{ name: 'name', label: 'Name of the new box', hint: 'Default: a fruit name' }]}
          submitLabel="Fork"
          formatCommand={(values) => formatCommandLine('box', 'fork', name, values.name)}
          onClose={close}
          submit={async (values, key) => {
            const { box: copy } = await client.forkBox(id, values.name ? { name: values.name } : {}, key)
            created.value = copy.hostname
            close()
          }}
        />
      )}
      {open.value === 'snapshot' && (
        <FormDialog
          title={`Take a snapshot of ${name}`}
          fields={[{ name: 'name', label: 'Name of the snapshot', value: `${name}-1` }]}
          submitLabel="Take the snapshot"
          formatCommand={(values) => formatCommandLine('box', 'snapshot', name, values.name)}
          onClose={close}
          submit={async (values, key) => {
            const { snapshot } = await client.createSnapshot({ boxId: id, name: values.name ?? '' }, key)
            message.value = `The snapshot ${snapshot.name} is being taken.`
            close()
          }}
        />
      )}
      {open.value === 'delete' && (
        <FormDialog
          title={`Delete ${name}`}
          fields={[{ name: 'name', label: `Type ${name} to delete the box and its files` }]}
          submitLabel="Delete"
          formatCommand={() => `box rm ${name}`}
          accepts={(values) => values.name === name}
          onClose={close}
          submit={async () => {
            await client.deleteBox(id)
            close()
            // The box, with this button, is removed from the page.
            focusHeading()
          }}
        />
      )}
    </div>
  )
}
