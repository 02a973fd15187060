// The settings of a box: its name, its schedule, its size and region, and what else the page of a box offers.
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Box, PatchBoxRequest } from '../../shared/api/boxes.ts'
import type { RegionInfo } from '../../shared/api/images.ts'
import type { Member } from '../../shared/api/members.ts'
import type { Region, Tier } from '../../shared/tiers.ts'
import {
  acceptsSchedule,
  formatScheduleCommand,
  listScheduleValues,
  toScheduleRequest,
} from '../data/box-schedule.ts'
import { formatCommandLine } from '../data/command-line.ts'
import { listSettings, mayGive, type Setting } from '../data/items.ts'
import { getClient, session } from '../data/live.ts'
import { ALL_TIER_OPTIONS } from '../data/tiers.ts'
import { getWorkspaceClient } from '../data/workspace-client.ts'
import type { MenuItem } from '../design/menu.tsx'
import { type DialogProps, useDialog } from './use-dialog.tsx'

const LABELS: Record<Setting, string> = {
  rename: 'Rename',
  give: 'Give to a member',
  schedule: 'Schedule',
  resize: 'Resize',
  move: 'Move',
  template: 'Make a template',
  stop: 'Stop',
}

export type BoxSettings = {
  items: MenuItem[]
  /** What the last one has done. */
  message: string
  view: ComponentChildren
}

export function useBoxSettings(box: Box): BoxSettings {
  const dialog = useDialog()
  const message = useSignal('')
  const done = (text: string) => {
    message.value = text
  }
  function open(setting: Setting): Promise<void> {
    message.value = ''
    return dialog.load(async () => {
      const { regions } = setting === 'move' ? await getClient().listRegions() : { regions: [] }
      const { members } = setting === 'give' ? await getWorkspaceClient().listMembers() : { members: [] }
      return DIALOGS[setting](box, done, { regions, members })
    })
  }
  const user = session.value?.user
  const settings = listSettings(box).filter(
    (setting) => setting !== 'give' || (user !== undefined && mayGive(box, user)),
  )
  return {
    items: settings.map((setting) => ({ label: LABELS[setting], onSelect: () => void open(setting) })),
    message: message.value,
    view: (
      <>
        {dialog.problem}
        {dialog.view}
      </>
    ),
  }
}

type Choices = { regions: readonly RegionInfo[]; members: readonly Member[] }
type CreateDialog = (box: Box, done: (text: string) => void, choices: Choices) => DialogProps

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
  give: ({ id, hostname, ownerUserId, restricted }, done, { members }) => {
    const receivers = members.filter((member) => member.status === 'active' && member.id !== ownerUserId)
    const find = (memberId: string | undefined) => receivers.find((member) => member.id === memberId)
    const getLabel = ({ email, name }: Member) => email ?? name
    return {
      title: `Give ${hostname} to a member`,
      children: (
        <p>
          {receivers.length === 0
            ? 'The workspace has no other member who has joined it. An owner invites people on the page Members.'
            : 'The box keeps running. The member is charged for it from then on. Secrets that are granted to its owner only are unmounted.'}
        </p>
      ),
      fields: [
        {
          name: 'member',
          label: 'Member',
          options: receivers.map((member) => ({
            value: member.id,
            label: `${getLabel(member)} (${member.role})`,
          })),
          value: receivers[0]?.id ?? '',
        },
      ],
      submitLabel: 'Give',
      accepts: (values) => find(values.member) !== undefined,
      explain: (values) =>
        find(values.member)?.role === 'contractor' && !restricted
          ? 'The box of a contractor is restricted: it loses its secrets and its links for others, and stays restricted.'
          : null,
      formatCommand(values) {
        const member = find(values.member)
        return formatCommandLine('box', 'give', hostname, member ? getLabel(member) : 'MEMBER')
      },
      async submit(values, key) {
        await getClient().giveBox(id, values.member ?? '', key)
        const member = find(values.member)
        done(`The box belongs to ${member ? getLabel(member) : 'the member'} now.`)
      },
    }
  },
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
  move: ({ id, hostname, region }, done, { regions }) => ({
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
