// The policies of the workspace, in groups. Owners change them.

import type { Policy, PolicyName, PolicyResponse } from '../../../shared/api/policies.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { getClient, session } from '../../data/live.ts'
import {
  describeInitial,
  describePolicy,
  formatPolicyValue,
  isInitial,
  POLICIES,
  POLICY_GROUPS,
  parsePolicyForm,
  toFormValues,
  WEEKDAY_NAMES,
  WEEKDAYS,
} from '../../data/policies.ts'
import { ALL_TIER_OPTIONS } from '../../data/tiers.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { Card } from '../../design/card.tsx'
import { Setting, Settings } from '../../design/settings.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Age } from '../../views/age.tsx'
import type { Field } from '../../views/form-field.tsx'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

export function PoliciesPage() {
  const loaded = useLoaded(() => getClient().loadPolicies())
  const dialog = useDialog()
  const isOwner = session.value?.user.role === 'owner'
  const { value, error } = loaded
  return (
    <>
      <PageHead page="policies" command="box policies" />
      <p>
        What members may do. {isOwner ? 'Policies apply from the next request on.' : 'Owners change them.'}
      </p>
      {value === null && error === null && <Skeleton label="Loading the policies." rows={12} />}
      {value !== null && (
        <div class="stack">
          {Object.entries(POLICY_GROUPS).map(([group, names]) => (
            <Card key={group} title={group}>
              <Settings>
                {names.map((name) => (
                  <PolicySetting
                    key={name}
                    name={name}
                    response={value}
                    open={isOwner ? (create) => dialog.open(create(name, value.policy, loaded.reload)) : null}
                  />
                ))}
              </Settings>
            </Card>
          ))}
        </div>
      )}
      {value?.updatedAt && (
        <p>
          <small>
            Last change <Age at={value.updatedAt} />
          </small>
        </p>
      )}
      <Freshness loaded={loaded} />
      {dialog.view}
    </>
  )
}

type CreateDialog = (name: PolicyName, policy: Policy, reload: () => Promise<void>) => DialogProps

type PolicySettingProps = {
  name: PolicyName
  response: PolicyResponse
  /** Null: not an action of the user. */
  open: ((create: CreateDialog) => void) | null
}

function PolicySetting({ name, response: { policy, quietHoursProblem }, open }: PolicySettingProps) {
  const { title, description } = POLICIES[name]
  return (
    <Setting
      title={title}
      description={description}
      value={showHidden(describePolicy(name, policy))}
      problem={name === 'quietHours' && quietHoursProblem !== null ? showHidden(quietHoursProblem) : null}
    >
      {open && (
        <>
          {!isInitial(name, policy) && (
            <button
              type="button"
              class="quiet"
              aria-label={`Reset ${title}`}
              onClick={() => open(createResetDialog)}
            >
              Reset
            </button>
          )}
          <button
            type="button"
            class="quiet"
            aria-label={`Edit ${title}`}
            onClick={() => open(createEditDialog)}
          >
            Edit
          </button>
        </>
      )}
    </Setting>
  )
}

function listFields(name: PolicyName, policy: Policy): Field[] {
  const values = toFormValues(policy[name])
  const { kind, title, unit, options = {} } = POLICIES[name]
  const field = { name: 'value', label: title, value: values.value ?? '' }
  switch (kind) {
    case 'tier':
      return [{ ...field, options: ALL_TIER_OPTIONS, value: values.value || 'lite' }]
    case 'choice':
      return [{ ...field, options: Object.entries(options).map(([value, label]) => ({ value, label })) }]
    case 'list':
      return [{ ...field, isLong: true, hint: 'One per line' }]
    case 'quietHours': {
      const choices = WEEKDAYS.map((value) => ({ value, label: WEEKDAY_NAMES[value] }))
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
      return [{ ...field, ...(unit !== undefined && { hint: `In ${unit}` }) }]
  }
}

const createEditDialog: CreateDialog = (name, policy, reload) => ({
  title: POLICIES[name].title,
  children: <p>{POLICIES[name].description}</p>,
  fields: listFields(name, policy),
  submitLabel: 'Save',
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

const createResetDialog: CreateDialog = (name, policy, reload) => ({
  title: `Reset: ${POLICIES[name].title}`,
  children: (
    <p>
      Instead of {showHidden(describePolicy(name, policy))}, the policy gets the value of a new workspace:{' '}
      {describeInitial(name)}.
    </p>
  ),
  fields: [],
  submitLabel: 'Reset',
  formatCommand: () => formatCommandLine('box', 'policies', 'set', name, 'default'),
  async submit() {
    await getWorkspaceClient().changePolicies({ [name]: null })
    await reload()
  },
})
