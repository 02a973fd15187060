// The policies of the workspace. Owners change them.

import type { Policy, PolicyName } from '../../../shared/api/policies.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { getClient, session } from '../../data/live.ts'
import {
  formatPolicyValue,
  POLICIES,
  POLICY_NAMES,
  parsePolicyForm,
  toFormValues,
  WEEKDAYS,
} from '../../data/policies.ts'
import { ALL_TIER_OPTIONS } from '../../data/tiers.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import type { Field } from '../../views/form-field.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { LocalTime } from '../../views/local-time.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

export function PoliciesPage() {
  const loaded = useLoaded(() => getClient().loadPolicies())
  const dialog = useDialog()
  const isOwner = session.value?.user.role === 'owner'
  const { value } = loaded
  return (
    <>
      <PageHead page="policies" command="box policies" />
      {value !== null && (
        <table>
          <thead>
            <tr>
              <th scope="col">Policy</th>
              <th scope="col">Value</th>
              <th scope="col">Meaning</th>
              {isOwner && <th scope="col">Actions</th>}
            </tr>
          </thead>
          <tbody>
            {POLICY_NAMES.map((name) => (
              <tr key={name}>
                <th scope="row">
                  {POLICIES[name].title} <small>{name}</small>
                </th>
                <td data-label="Value">
                  {showHidden(formatPolicyValue(value.policy[name]))}
                  {name === 'quietHours' && value.quietHoursProblem && (
                    <p class="problem">{showHidden(value.quietHoursProblem)}</p>
                  )}
                </td>
                <td data-label="Meaning">{POLICIES[name].description}</td>
                {isOwner && (
                  <td>
                    <div class="actions">
                      <button
                        type="button"
                        aria-label={`Set ${POLICIES[name].title}`}
                        onClick={() => dialog.open(createSetDialog(name, value.policy, loaded.reload))}
                      >
                        Set
                      </button>
                      <button
                        type="button"
                        aria-label={`Reset ${POLICIES[name].title}`}
                        onClick={() => dialog.open(createResetDialog(name, loaded.reload))}
                      >
                        Reset
                      </button>
                    </div>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {value?.updatedAt && (
        <p>
          Changed at <LocalTime at={value.updatedAt} />.
        </p>
      )}
      <Freshness loaded={loaded} />
      {dialog.view}
    </>
  )
}

function listFields(name: PolicyName, policy: Policy): Field[] {
  const values = toFormValues(policy[name])
  const { kind, description } = POLICIES[name]
  const field = { name: 'value', label: 'Value', hint: description, value: values.value ?? '' }
  switch (kind) {
    case 'tier':
      return [{ ...field, options: ALL_TIER_OPTIONS, value: values.value || 'lite' }]
    case 'role':
      return [
        {
          ...field,
          options: [
            { value: 'member', label: 'owners and members' },
            { value: 'owner', label: 'owners' },
          ],
        },
      ]
    case 'switch':
      return [{ ...field, options: ['on', 'off'].map((value) => ({ value, label: value })) }]
    case 'list':
      return [{ ...field, isLong: true, hint: `${description}. One per line` }]
    case 'quietHours': {
      const choices = WEEKDAYS.map((value) => ({ value, label: value }))
      const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()
      return [
        { name: 'days', label: 'Days on which the period starts', choices, value: values.days ?? '' },
        { name: 'start', label: 'Start of the period', value: values.start ?? '22:00' },
        { name: 'end', label: 'End of the period', value: values.end ?? '07:00' },
        {
          name: 'allDayDays',
          label: 'Days that are quiet for 24 hours',
          choices,
          value: values.allDayDays ?? '',
        },
        { name: 'timezone', label: 'Time zone', value: values.timezone ?? timeZone },
      ]
    }
    default:
      return [field]
  }
}

const createSetDialog = (name: PolicyName, policy: Policy, reload: () => Promise<void>): DialogProps => ({
  title: `Set: ${POLICIES[name].title}`,
  fields: listFields(name, policy),
  submitLabel: 'Set',
  accepts: (values) => parsePolicyForm(name, values) !== null,
  formatCommand(values) {
    const value = parsePolicyForm(name, values)
    const words = value === null ? ['VALUE'] : formatPolicyValue(value as Policy[PolicyName]).split(' ')
    return formatCommandLine('box', 'policies', 'set', name, ...words)
  },
  async submit(values) {
    await getWorkspaceClient().changePolicies({ [name]: parsePolicyForm(name, values) })
    await reload()
  },
})

const createResetDialog = (name: PolicyName, reload: () => Promise<void>): DialogProps => ({
  title: `Reset: ${POLICIES[name].title}`,
  children: <p>The policy gets the value of a new workspace.</p>,
  fields: [],
  submitLabel: 'Reset',
  formatCommand: () => formatCommandLine('box', 'policies', 'set', name, 'default'),
  async submit() {
    await getWorkspaceClient().changePolicies({ [name]: null })
    await reload()
  },
})
