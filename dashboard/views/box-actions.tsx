// The buttons of a box, with the dialogs of the actions that need values.

import { signal, useSignal } from '@preact/signals'
import type { IconNode } from 'lucide'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { Tier } from '../../shared/tiers.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { formatCommandLine } from '../data/command-line.ts'
import { type Action, listActions } from '../data/items.ts'
import { boxes, getClient } from '../data/live.ts'
import { listTierOptions, toNewBox } from '../data/tiers.ts'
import { Icon } from '../design/icon.tsx'
import { IconButton } from '../design/icon-button.tsx'
import { CameraIcon, EllipsisIcon, ForkIcon, PauseIcon, PlayIcon, TrashIcon } from '../design/icons.ts'
import { Menu, type MenuItem } from '../design/menu.tsx'
import { AdmissionDialog } from './admission-dialog.tsx'
import type { BoxSettings } from './box-settings.tsx'
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

const ICONS: Record<Action, IconNode> = {
  wake: PlayIcon,
  suspend: PauseIcon,
  fork: ForkIcon,
  snapshot: CameraIcon,
  delete: TrashIcon,
}

type DialogAction = Exclude<Action, 'wake' | 'suspend'>

type Opened = {
  box: Box
  action: DialogAction
  onMessage(text: string): void
  /** The name of the new box. */
  onCreated(name: string): void
}

/** Not part of the row of the box: another user may delete the box while the dialog is open. */
const opened = signal<Opened | null>(null)

export function closeBoxDialog(): void {
  opened.value = null
}

/** @param settings of the page of the box. Absent: the row of a list */
export function BoxActions({ box, settings }: { box: Box; settings?: BoxSettings }) {
  const { id, hostname: name } = box
  const message = useSignal('')
  const created = useSignal<string | null>(null)
  const error = useSignal<BoxwoodError | null>(null)
  const client = getClient()
  async function run(action: Action) {
    error.value = null
    message.value = ''
    created.value = null
    if (!isImmediate(action)) {
      opened.value = {
        box,
        action,
        onMessage(text) {
          message.value = text
        },
        onCreated(copy) {
          created.value = copy
        },
      }
      return
    }
    try {
      await (action === 'wake' ? client.wakeBox(id) : client.suspendBox(id))
    } catch (reason) {
      error.value = toBoxwoodError(reason)
    }
  }
  const isOfPage = settings !== undefined
  const actions = listActions(box)
  const first = actions.find(isImmediate)
  const toItem = (action: Action): MenuItem => ({
    label: LABELS[action],
    icon: ICONS[action],
    isDanger: action === 'delete',
    onSelect: () => void run(action),
  })
  const others = actions.filter((action) => action !== 'delete' && !isImmediate(action))
  return (
    <div class="actions">
      {first !== undefined &&
        (isOfPage ? (
          <button type="button" onClick={() => void run(first)} aria-label={`${LABELS[first]} ${name}`}>
            <Icon of={ICONS[first]} />
            {LABELS[first]}
          </button>
        ) : (
          <IconButton
            icon={ICONS[first]}
            label={`${LABELS[first]} ${name}`}
            onClick={() => void run(first)}
          />
        ))}
      {actions.length > 0 && (
        <Menu
          label={`Actions of ${name}`}
          class={isOfPage ? 'icon-button' : 'quiet icon-button'}
          groups={[
            others.map(toItem),
            settings?.items ?? [],
            actions.includes('delete') ? [toItem('delete')] : [],
          ]}
        >
          <Icon of={EllipsisIcon} />
        </Menu>
      )}
      <span role="status">
        {message}
        {settings?.message}
      </span>
      <Problem error={error.value} />
      {settings?.view}
      {created.value !== null && <NextSteps name={created.value} />}
    </div>
  )
}

const isImmediate = (action: Action): action is 'wake' | 'suspend' =>
  action === 'wake' || action === 'suspend'

/** The dialog of the action that was chosen last. */
export function BoxActionDialog() {
  const { value } = opened
  if (value === null) return null
  // Another user may have renamed the box.
  const box = boxes.value?.get(value.box.id) ?? value.box
  return <ActionDialog key={`${value.action} ${box.id}`} {...value} box={box} />
}

function ActionDialog({ box, action, onMessage, onCreated }: Opened) {
  const { id, hostname: name } = box
  const client = getClient()
  if (action === 'fork')
    return (
      <AdmissionDialog
        title={`Fork ${name}`}
        fields={[
          { name: 'name', label: 'Name of the new box', hint: 'Default: a fruit name' },
          { name: 'tier', label: 'Tier', options: listTierOptions(box.tier) },
        ]}
        submitLabel="Fork"
        formatCommand={(values) =>
          formatCommandLine('box', 'fork', name, values.name, values.tier && '--tier', values.tier)
        }
        toAdmission={(values) => ({
          tier: (values.tier as Tier | '') || box.tier,
          image: box.image,
          region: box.region,
        })}
        onClose={closeBoxDialog}
        submit={async (values, key) => {
          const { box: copy } = await client.forkBox(id, toNewBox(values), key)
          onCreated(copy.hostname)
        }}
      />
    )
  if (action === 'snapshot')
    return (
      <FormDialog
        title={`Take a snapshot of ${name}`}
        fields={[{ name: 'name', label: 'Name of the snapshot', value: `${name}-1` }]}
        submitLabel="Take the snapshot"
        formatCommand={(values) => formatCommandLine('box', 'snapshot', name, values.name)}
        onClose={closeBoxDialog}
        submit={async (values, key) => {
          const { snapshot } = await client.createSnapshot({ boxId: id, name: values.name ?? '' }, key)
          onMessage(`The snapshot ${snapshot.name} is being taken.`)
        }}
      />
    )
  return (
    <FormDialog
      title={`Delete ${name}`}
      fields={[{ name: 'name', label: `Type ${name} to delete the box and its files` }]}
      submitLabel="Delete"
      formatCommand={() => `box rm ${name}`}
      accepts={(values) => values.name === name}
      onClose={closeBoxDialog}
      submit={async () => {
        await client.deleteBox(id)
      }}
    />
  )
}
