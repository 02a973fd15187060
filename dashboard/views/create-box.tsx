// The dialog that creates a box.
import type { Box } from '../../shared/api/boxes.ts'
import { mayReadEnvironments } from '../data/access.ts'
import {
  acceptsBox,
  explainRefusal,
  formatCreateCommand,
  NO_ENVIRONMENT,
  toCreateRequest,
} from '../data/create-box.ts'
import { getClient, session, snapshots } from '../data/live.ts'
import { listTierOptions } from '../data/tiers.ts'
import { showHidden } from '../data/visible-text.ts'
import { getWorkspaceClient } from '../data/workspace-client.ts'
import { FormDialog } from './form-dialog.tsx'
import type { Field } from './form-field.tsx'
import { useLoaded } from './loaded.tsx'
import { Problem } from './problem.tsx'

type CreateBoxProps = { onCreated(box: Box): void; onClose(): void }

/** What the choices of the form depend on. */
async function loadChoices() {
  const client = getClient()
  const isMember = session.value !== null && mayReadEnvironments(session.value.user.role)
  const [{ regions }, { workspace }, environments, policies] = await Promise.all([
    client.listRegions(),
    getWorkspaceClient().loadWorkspace(),
    isMember ? client.listEnvironments() : null,
    isMember ? client.loadPolicies() : null,
  ])
  return {
    regions,
    environments: environments?.environments ?? [],
    allowedImages: policies?.policy.allowedImages ?? null,
    // Owners are not limited.
    memberLimits: session.value?.user.role === 'member' ? (policies?.policy ?? null) : null,
    closingAt: workspace.closingAt,
  }
}

type Choices = Awaited<ReturnType<typeof loadChoices>>

export function CreateBox({ onCreated, onClose }: CreateBoxProps) {
  const { value: choices, error } = useLoaded(loadChoices)
  return (
    <FormDialog
      title="Create a box"
      fields={listFields(choices)}
      submitLabel="Create"
      formatCommand={formatCreateCommand}
      accepts={acceptsBox}
      explain={(values) =>
        choices === null ? null : explainRefusal(values, snapshots.value?.values() ?? [], choices)
      }
      onClose={onClose}
      submit={async (values, key) => {
        const { box } = await getClient().createBox(toCreateRequest(values), key)
        onCreated(box)
      }}
    >
      <Problem error={error} />
    </FormDialog>
  )
}

function listFields(choices: Choices | null): Field[] {
  const { regions = [], environments = [], memberLimits = null } = choices ?? {}
  const longestPause = memberLimits?.autoPauseFloorMin ?? null
  const available = [...(snapshots.value?.values() ?? [])].filter(({ status }) => status === 'available')
  const withImages = regions.filter(({ images }) => images)
  return [
    { name: 'name', label: 'Name', hint: 'Default: a fruit name' },
    { name: 'tier', label: 'Tier', options: listTierOptions(memberLimits?.memberMaxTier ?? null) },
    {
      name: 'region',
      label: 'Region',
      options: [
        { value: '', label: 'Default' },
        ...regions.map(({ region, provider, isDefault }) => ({
          value: region,
          label: `${region}: ${provider}${isDefault ? ', the default' : ''}`,
        })),
      ],
      isAdvanced: true,
    },
    ...(withImages.length > 0
      ? [
          {
            name: 'image',
            label: 'Image',
            hint: `Such as debian:12, in ${withImages.map(({ region }) => region).join(', ')}. Default: ${withImages[0]?.defaultImage}`,
            isAdvanced: true,
          },
        ]
      : []),
    {
      name: 'from',
      label: 'Files of the snapshot or template',
      hint: 'The box gets its region and image too.',
      options: [
        { value: '', label: 'none' },
        ...available.map(({ id, name, templateName, sourceBoxHostname }) => ({
          value: id,
          label: `${showHidden(templateName ?? name)} of ${showHidden(sourceBoxHostname)}`,
        })),
      ],
      isAdvanced: true,
    },
    ...(environments.length > 0
      ? [
          {
            name: 'environment',
            label: 'Environment',
            options: [
              { value: '', label: 'Default' },
              { value: NO_ENVIRONMENT, label: 'none' },
              ...environments.map(({ name }) => ({ value: name, label: showHidden(name) })),
            ],
            isAdvanced: true,
          },
        ]
      : []),
    { name: 'ttl', label: 'Suspend after (minutes)', hint: '5 to 43200. Default: never', isAdvanced: true },
    {
      name: 'autoPause',
      label: 'Suspend when idle for (minutes)',
      hint:
        longestPause === null
          ? '30 to 10080. Default: never'
          : `30 to ${longestPause}. Default: ${longestPause}`,
      isAdvanced: true,
    },
    {
      name: 'restricted',
      label: 'Restricted',
      hint: 'For third parties: no secrets, and no links that need no membership. It stays so.',
      options: [
        { value: '', label: 'no' },
        { value: 'yes', label: 'yes' },
      ],
      isAdvanced: true,
    },
  ]
}
