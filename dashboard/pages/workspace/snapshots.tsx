// The snapshots and templates of the workspace, live.

import { useSignal } from '@preact/signals'
import type { Snapshot } from '../../../shared/api/snapshots.ts'
import type { Tier } from '../../../shared/tiers.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { operations, snapshots } from '../../data/live.ts'
import { formatGb } from '../../data/sizes.ts'
import {
  findSnapshotError,
  listSnapshotActions,
  SNAPSHOT_KINDS,
  type SnapshotAction,
  selectSnapshots,
} from '../../data/snapshots.ts'
import { listTierOptions, toNewBox } from '../../data/tiers.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { CameraIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Age, Expiry } from '../../views/age.tsx'
import { NextSteps } from '../../views/next-steps.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { SearchField } from '../../views/search-field.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

const LABELS: Record<SnapshotAction, string> = {
  restore: 'Create a box',
  template: 'Make a template',
  untemplate: 'Remove the template name',
  delete: 'Delete',
}

export function SnapshotsPage() {
  const filter = useSignal('')
  const created = useSignal<string | null>(null)
  const dialog = useDialog()
  const all = snapshots.value
  const shown = all === null ? [] : selectSnapshots(all, filter.value)
  const onCreated = (name: string) => {
    created.value = name
  }
  return (
    <>
      <PageHead page="snapshots" command="box snapshots">
        <SearchField label="Filter" value={filter} />
      </PageHead>
      {created.value !== null && <NextSteps name={created.value} />}
      {all === null ? (
        <Skeleton label="Loading the snapshots." />
      ) : all.size === 0 ? (
        <EmptyState icon={CameraIcon} title="There is no snapshot.">
          <p>
            A snapshot has the files of a box at one moment. New boxes are restored from it, and a template is
            a snapshot with a name. The menu of a box takes one.
          </p>
          <p class="buttons">
            <a href="./">Choose a box</a>
          </p>
        </EmptyState>
      ) : shown.length === 0 ? (
        <p>No snapshot matches the filter.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Box</th>
              <th scope="col">Kind</th>
              <th scope="col">Status</th>
              <th scope="col">Size</th>
              <th scope="col">Taken</th>
              <th scope="col">Actions</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((snapshot) => (
              <SnapshotRow
                key={snapshot.id}
                snapshot={snapshot}
                act={(action) => dialog.open(createDialog(snapshot, action, onCreated))}
              />
            ))}
          </tbody>
        </table>
      )}
      {dialog.view}
    </>
  )
}

type RowProps = { snapshot: Snapshot; act(action: SnapshotAction): void }

function SnapshotRow({ snapshot, act }: RowProps) {
  const { name, sourceBoxHostname, kind, templateName, status, sizeGb, createdAt, expiresAt, description } =
    snapshot
  const error = findSnapshotError(snapshot, operations.value)
  return (
    <tr>
      <th scope="row">
        {showHidden(name)}
        {description && <small> {showHidden(description)}</small>}
      </th>
      <td data-label="Box">{showHidden(sourceBoxHostname)}</td>
      <td data-label="Kind">
        {SNAPSHOT_KINDS[kind]}
        {templateName !== null && (
          <>
            {' '}
            <code>{showHidden(templateName)}</code>
          </>
        )}
      </td>
      <td data-label="Status">
        <span class={status === 'available' ? 'chip good' : 'chip'}>{status}</span>
        {error !== null && <span class="problem"> {showHidden(error)}</span>}
      </td>
      <td data-label="Size">{sizeGb === null ? '–' : formatGb(sizeGb)}</td>
      <td data-label="Taken">
        <Age at={createdAt} />
        {expiresAt !== null && (
          <small>
            {' '}
            expires <Expiry at={expiresAt} />
          </small>
        )}
      </td>
      <td>
        <div class="actions">
          {listSnapshotActions(snapshot).map((action) => (
            <button
              key={action}
              type="button"
              onClick={() => act(action)}
              aria-label={`${LABELS[action]}: ${showHidden(name)}`}
            >
              {LABELS[action]}
            </button>
          ))}
        </div>
      </td>
    </tr>
  )
}

function createDialog(
  { id, name, templateName, tier, image, region, sizeGb }: Snapshot,
  action: SnapshotAction,
  onCreated: (name: string) => void,
): DialogProps {
  const client = getWorkspaceClient()
  const title = showHidden(name)
  switch (action) {
    case 'restore':
      return {
        title: `Create a box from ${title}`,
        fields: [
          { name: 'name', label: 'Name of the new box', hint: 'Default: a fruit name' },
          { name: 'tier', label: 'Tier', options: listTierOptions(tier) },
        ],
        submitLabel: 'Create the box',
        formatCommand: (values) =>
          formatCommandLine('box', 'restore', name, values.name, values.tier && '--tier', values.tier),
        toAdmission: (values) => ({
          tier: (values.tier as Tier | '') || tier,
          image,
          region,
          sizeGb,
        }),
        async submit(values, key) {
          const { box } = await client.restoreSnapshot(id, toNewBox(values), key)
          onCreated(box.hostname)
        },
      }
    case 'template':
      return {
        title: `Make ${title} a template`,
        fields: [
          {
            name: 'name',
            label: 'Name of the template',
            hint: 'A template that has the name already becomes a snapshot without it.',
          },
        ],
        submitLabel: 'Make a template',
        formatCommand: (values) => formatCommandLine('box', 'template', name, values.name),
        accepts: (values) => Boolean(values.name),
        async submit(values) {
          await client.nameTemplate(id, values.name ?? '')
        },
      }
    case 'untemplate':
      return {
        title: `Remove the template name ${showHidden(templateName ?? '')}`,
        children: <p>The snapshot stays.</p>,
        fields: [],
        submitLabel: 'Remove the name',
        formatCommand: () => formatCommandLine('box', 'templates', 'rm', templateName),
        async submit() {
          await client.removeTemplate(id)
        },
      }
    case 'delete':
      return {
        title: `Delete the snapshot ${title}`,
        children: <p>Boxes that were created from it stay.</p>,
        fields: [],
        submitLabel: 'Delete',
        formatCommand: () => formatCommandLine('box', 'snapshots', 'rm', name),
        async submit() {
          await client.deleteSnapshot(id)
        },
      }
  }
}
