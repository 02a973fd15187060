// The settings of a box: its name, its schedule, its size and region, and what else the page of a box offers.
import { useSignal } from '@preact/signals'
import type { Box, PatchBoxRequest } from '../../shared/api/boxes.ts'
import type { RegionInfo } from '../../shared/api/images.ts'
import type { Region, Tier } from '../../shared/tiers.ts'
import {
  acceptsSchedule,
  formatScheduleCommand,
  listScheduleValues,
  toScheduleRequest,
} from '../data/box-schedule.ts'
import { formatCommandLine } from '../data/command-line.ts'
import { listSettings, type Setting } from '../data/items.ts'
import { getClient } from '../data/live.ts'
import { ALL_TIER_OPTIONS } from '../data/tiers.ts'
import { type DialogProps, useDialog } from './use-dialog.tsx'

const LABELS: Record<Setting, string> = {
  rename: 'Rename',
  schedule: 'Schedule',
  resize: 'Resize',
  move: 'Move',
  template: 'Make a template',
  stop: 'Stop',
}

export function BoxSettings({ box }: { box: Box }) {
  const dialog = useDialog()
  const message = useSignal('')
  const done = (text: string) => {
    message.value = text
  }
  function open(setting: Setting): Promise<void> {
    message.value = ''
    return dialog.load(async () => {
      const { regions } = setting === 'move' ? await getClient().listRegions() : { regions: [] }
      return DIALOGS[setting](box, done, regions)
    })
  }
  return (
    <div class="actions">
      {listSettings(box).map((setting) => (
        <button
          key={setting}
          type="button"
          onClick={() => void open(setting)}
          aria-label={`${LABELS[setting]}: ${box.hostname}`}
        >
          {LABELS[setting]}
        </button>
      ))}
      <span role="status">{message}</span>
      {dialog.problem}
      {dialog.view}
    </div>
  )
}

type CreateDialog = (box: Box, done: (text: string) => void, regions: readonly RegionInfo[]) => DialogProps

const DIALOGS: Record<Setting, CreateDialog> = {
  rename: ({ id, hostname }) => ({
    title: `Rename ${hostname}`,
    fields: [{ name: 'name', label: 'New name', value: hostname }],
    submitLabel: 'Rename',
    accepts: ({ name }) => Boolean(name) && name !== hostname,
    formatCommand: ({ name }) => formatCommandLine('box', 'rename', hostname, name || 'NAME'),
    async submit({ name = '' }) {
      // The page gets the new name with the next change of the feed.
      await getClient().updateBox(id, { name })
    },
  }),
  schedule: (box, done) => ({
    title: `Schedule of ${box.hostname}`,
    children: <p>An empty field turns its setting off.</p>,
    fields: listScheduleValues(box),
    submitLabel: 'Set',
    accepts: acceptsSchedule,
    formatCommand: (values) => formatScheduleCommand(box, values),
    async submit(values) {
      const request: PatchBoxRequest = toScheduleRequest(box, values)
      if (Object.keys(request).length > 0) await getClient().updateBox(box.id, request)
      done('The schedule is set.')
    },
  }),
  resize: ({ id, hostname, tier, desiredState }, done) => ({
    title: `Resize ${hostname}`,
    children: <p>Where the region has no live resize, the processes of a running box are terminated.</p>,
    fields: [{ name: 'tier', label: 'Tier', options: ALL_TIER_OPTIONS, value: tier }],
    submitLabel: 'Resize',
    accepts: (values) => values.tier !== tier,
    toAdmission: (values) => ({ resized: { tier, desiredState }, tier: values.tier as Tier }),
    formatCommand: (values) => formatCommandLine('box', 'resize', hostname, values.tier),
    async submit(values, key) {
      await getClient().resizeBox(id, values.tier as Tier, key)
      done(`The box is being resized to ${values.tier}.`)
    },
  }),
  move: ({ id, hostname, region }, done, regions) => ({
    title: `Move ${hostname}`,
    children: (
      <p>
        The processes of the box are terminated, and its files are copied. A box moves at most once a day.
      </p>
    ),
    fields: [
      {
        name: 'region',
        label: 'Region',
        options: regions.map((info) => ({ value: info.region, label: `${info.region}: ${info.provider}` })),
        value: region,
      },
    ],
    submitLabel: 'Move',
    accepts: (values) => values.region !== region,
    formatCommand: (values) => formatCommandLine('box', 'move', hostname, values.region),
    async submit(values, key) {
      await getClient().moveBox(id, values.region as Region, key)
      done(`The box is being moved to ${values.region}.`)
    },
  }),
  template: ({ id, hostname }, done) => ({
    title: `Make a template of ${hostname}`,
    fields: [{ name: 'name', label: 'Name of the template' }],
    submitLabel: 'Make a template',
    accepts: ({ name }) => Boolean(name),
    formatCommand: ({ name }) => formatCommandLine('box', 'template', hostname, name || 'NAME'),
    async submit({ name = '' }, key) {
      await getClient().createTemplate(id, name, key)
      done(`The template ${name} is being taken.`)
    },
  }),
  stop: ({ id, hostname }, done) => ({
    title: `Stop ${hostname}`,
    children: <p>The processes of the box are terminated. Its files stay.</p>,
    fields: [],
    submitLabel: 'Stop',
    formatCommand: () => formatCommandLine('box', 'stop', hostname),
    async submit() {
      await getClient().stopBox(id)
      done('The box is being stopped.')
    },
  }),
}
