// The dialog that creates a box.
import type { Box } from '../../shared/api/boxes.ts'
import { mayReadEnvironments } from '../data/access.ts'
import {
  acceptsBox,
  formatCreateCommand,
  NO_ENVIRONMENT,
  toAdmission,
  toCreateRequest,
} from '../data/create-box.ts'
import { getClient, session, snapshots } from '../data/live.ts'
import { loadAdmissionRules } from '../data/load-admission-rules.ts'
import { listTierCards } from '../data/tiers.ts'
import { showHidden } from '../data/visible-text.ts'
import { explainAdmission } from './admission-dialog.tsx'
import { FormDialog } from './form-dialog.tsx'
import type { Field } from './form-field.tsx'
import { useLoaded } from './loaded.tsx'
import { Problem } from './problem.tsx'

/** Images that many work with. */
const SUGGESTED_IMAGES = [
  { value: 'debian:12', label: 'Debian 12' },
  { value: 'ubuntu:24.04', label: 'Ubuntu 24.04' },
  { value: 'node:24', label: 'Node 24' },
  { value: 'python:3.13', label: 'Python 3.13' },
  { value: 'golang:1.25', label: 'Go 1.25' },
  { value: 'rust:1', label: 'Rust' },
] as const

type CreateBoxProps = { onCreated(box: Box): void; onClose(): void }

/** What the choices of the form depend on. */
async function loadChoices() {
  const mayRead = session.value !== null && mayReadEnvironments(session.value.user.role)
  const [rules, environments] = await Promise.all([
    loadAdmissionRules(),
    mayRead ? getClient().listEnvironments() : null,
  ])
  return { rules, regions: rules.regions, environments: environments?.environments ?? [] }
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
      {...(choices &&
        explainAdmission(
          (values) => toAdmission(values, snapshots.value?.values() ?? [], choices),
          choices.rules,
        ))}
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
  const { regions = [], environments = [], rules } = choices ?? {}
  const longestPause = rules?.memberLimits?.autoPauseFloorMin ?? null
  const available = [...(snapshots.value?.values() ?? [])].filter(({ status }) => status === 'available')
  const withImages = regions.filter(({ images }) => images)
  return [
    { name: 'name', label: 'Name', hint: 'Default: a fruit name' },
    { name: 'tier', label: 'Tier', options: listTierCards(rules?.billing?.prices ?? null), hasCards: true },
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
            suggestions: SUGGESTED_IMAGES,
            hint: `Any image of a registry, in ${withImages.map(({ region }) => region).join(', ')}. Default: ${withImages[0]?.defaultImage}`,
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
