// The agents of the boxes with their versions, and which boxes get new builds. Owners change the rollout.
import type { AgentList, Rollout as RolloutSettings } from '../../../shared/api/agents.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { session } from '../../data/live.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Card } from '../../design/card.tsx'
import type { Loaded } from '../../views/loaded.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

export function Rollout({ loaded }: { loaded: Loaded<AgentList> }) {
  const dialog = useDialog()
  const isOwner = session.value?.user.role === 'owner'
  const { value } = loaded
  if (value === null) return null
  return (
    <Card title="Agents of the boxes">
      <p class="tools">
        <span>
          New builds: {value.rollout.share} % of the boxes{value.rollout.paused && ', paused'}
        </span>
        {isOwner && (
          <button
            type="button"
            class="quiet"
            onClick={() => dialog.open(createDialog(value.rollout, loaded.reload))}
          >
            Change the rollout
          </button>
        )}
      </p>
      {value.agents.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Box</th>
              <th scope="col">Version</th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>
            {value.agents.map(({ boxId, hostname, version, state, detail }) => (
              <tr key={boxId}>
                <th scope="row">{showHidden(hostname)}</th>
                <td data-label="Version">{showHidden(version ?? 'not known')}</td>
                <td data-label="State">
                  {state}
                  {detail !== null && <small> {showHidden(detail)}</small>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {dialog.view}
    </Card>
  )
}

const createDialog = ({ share, paused }: RolloutSettings, reload: () => Promise<void>): DialogProps => ({
  title: 'Change the rollout of agents',
  fields: [
    { name: 'share', label: 'Percentage of the boxes that get new builds', value: String(share) },
    {
      name: 'paused',
      label: 'Upgrades',
      options: [
        { value: '', label: 'continue, also with builds that have failed on a box' },
        { value: 'yes', label: 'paused: no agent gets another build' },
      ],
      value: paused ? 'yes' : '',
    },
  ],
  submitLabel: 'Change',
  accepts: (values) => /^\d{1,3}$/.test(values.share ?? ''),
  formatCommand: (values) =>
    formatCommandLine(
      'box',
      'agents',
      'rollout',
      '--share',
      values.share,
      values.paused ? '--pause' : '--resume',
    ),
  async submit(values) {
    await getWorkspaceClient().changeRollout({ share: Number(values.share), paused: values.paused === 'yes' })
    await reload()
  },
})
