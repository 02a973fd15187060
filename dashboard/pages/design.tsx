// The components of the design in their states, for those who change them. Only a coordinator that runs from a checkout has it.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { createError } from '../../client/http/errors.ts'
import type { ObservedState } from '../../shared/api/boxes.ts'
import { formatState } from '../data/items.ts'
import { Avatar } from '../design/avatar.tsx'
import { Card } from '../design/card.tsx'
import { Chips } from '../design/chips.tsx'
import { EmptyState } from '../design/empty-state.tsx'
import { Icon } from '../design/icon.tsx'
import { IconButton } from '../design/icon-button.tsx'
import { BoxIcon, EllipsisIcon, MaximizeIcon, PencilIcon, TrashIcon } from '../design/icons.ts'
import { Menu } from '../design/menu.tsx'
import { Meter } from '../design/meter.tsx'
import { SegmentedControl } from '../design/segmented-control.tsx'
import { Setting, Settings } from '../design/settings.tsx'
import { Skeleton } from '../design/skeleton.tsx'
import { SortHeader } from '../design/sort-header.tsx'
import { Sparkline } from '../design/sparkline.tsx'
import { Steps } from '../design/steps.tsx'
import { Command, Commands } from '../views/command.tsx'
import { type Field, FormField } from '../views/form-field.tsx'
import { Problem } from '../views/problem.tsx'

const LONG_NAME = 'a-name-of-thirty-two-characters-'
const PROBLEM = createError({ code: 'name_taken', message: 'There is a box `fig` already.', status: 409 })
const STATES: readonly ObservedState[] = [
  ...(['provisioning', 'running', 'suspending', 'suspended', 'degraded'] as const),
  ...(['provision_failed', 'terminating', 'terminated'] as const),
]
const SORTED = ['ascending', 'descending', undefined] as const
const OPTIONS = [
  { value: 'lite', label: 'lite', detail: ['2 CPUs', '4 GB'] },
  { value: 'micro', label: 'micro', detail: ['1 CPU', '2 GB', 'above the limit of the plan'] },
]
const FIELDS: readonly Field[] = [
  { name: 'text', label: 'Text', hint: 'What is entered here' },
  { name: 'secret', label: 'Secret', isSecret: true },
  { name: 'lines', label: 'Lines', isLong: true },
  { name: 'option', label: 'Option', options: OPTIONS },
  { name: 'card', label: 'Cards', options: OPTIONS, hasCards: true },
  { name: 'choices', label: 'Choices', choices: OPTIONS },
  { name: 'suggested', label: 'Suggested', suggestions: OPTIONS },
]
const nothing = () => undefined

export function DesignPage() {
  useEffect(() => {
    document.title = 'Design · Boxwood'
  }, [])
  return (
    <>
      <div class="page-head">
        <h1 tabIndex={-1}>Design</h1>
        <Commands texts={['box ls', 'box create fig']} />
      </div>
      <div class="cards">
        <Buttons />
        <States />
        <Values />
        <Fields />
        <Lists />
        <Messages />
      </div>
    </>
  )
}

function Buttons() {
  const isPressed = useSignal(false)
  const segment = useSignal('all')
  return (
    <Card title="Buttons and menus">
      <p class="buttons">
        <button type="button" class="primary">
          Primary
        </button>
        <button type="button">Default</button>
        <button type="button" class="quiet">
          Quiet
        </button>
        <button type="button" class="danger">
          Danger
        </button>
        <button type="button" class="primary" disabled>
          Disabled
        </button>
        <button type="button" class="primary" aria-busy="true">
          Busy
        </button>
      </p>
      <p class="buttons">
        <IconButton icon={PencilIcon} label="Edit" onClick={nothing} />
        <IconButton
          icon={MaximizeIcon}
          label="Full screen"
          isPressed={isPressed.value}
          onClick={() => {
            isPressed.value = !isPressed.value
          }}
        />
        <Menu
          label="Actions"
          head="Groups of items"
          groups={[
            [{ label: 'A link', icon: BoxIcon, href: './' }],
            [
              { label: 'A choice', isChecked: true, onSelect: nothing },
              { label: 'Another choice', isChecked: false, onSelect: nothing },
            ],
            [{ label: 'Delete', icon: TrashIcon, isDanger: true, onSelect: nothing }],
          ]}
        >
          <Icon of={EllipsisIcon} />
        </Menu>
      </p>
      <SegmentedControl
        label="Segments"
        options={['all', 'running', 'failed'].map((value, count) => ({ value, label: value, count }))}
        value={segment.value}
        onChange={(value) => {
          segment.value = value
        }}
      />
    </Card>
  )
}

const States = () => (
  <Card title="States and people">
    <p class="buttons">
      {STATES.map((state) => (
        <span key={state} class={`state ${state}`}>
          {formatState(state)}
        </span>
      ))}
    </p>
    <p class="buttons">
      {['Ada Lovelace', 'grace@example.com', 'ليلى'].map((name) => (
        <span key={name} class="person">
          <Avatar name={name} />
          <span>{name}</span>
        </span>
      ))}
    </p>
    <Chips texts={['runs commands on boxes', `only ${LONG_NAME}`]} />
    <Steps titles={['Done', 'In progress', 'Later']} current={1}>
      <small>The first step</small>
      <small>The second step</small>
      <small>The third step</small>
    </Steps>
  </Card>
)

const Values = () => (
  <Card title="Values">
    {[0, 40, 80, 95, null].map((value) => (
      <p key={value}>
        <Meter label={`Meter of ${value}`} value={value} />
      </p>
    ))}
    <ul class="lines usage">
      <li>
        <span>CPU</span>
        <Sparkline label="CPU, last hour" values={[1, 4, 2, null, 8, 3]} top={10} />
        <span class="number">3 %</span>
      </li>
    </ul>
    <dl>
      <div>
        <dt>Term</dt>
        <dd>and its value</dd>
      </div>
    </dl>
  </Card>
)

function Fields() {
  const values = useSignal<Record<string, string>>({ card: 'lite' })
  return (
    <Card title="Fields">
      <div class="fields">
        {FIELDS.map((field) => (
          <FormField
            key={field.name}
            field={field}
            id={`design-${field.name}`}
            value={values.value[field.name] ?? ''}
            onChange={(value) => {
              values.value = { ...values.value, [field.name]: value }
            }}
          />
        ))}
      </div>
    </Card>
  )
}

const Lists = () => (
  <Card title="Lists">
    <table>
      <thead>
        <tr>
          {SORTED.map((direction) => (
            <SortHeader
              key={direction}
              label={direction ?? 'unsorted'}
              direction={direction}
              onSort={nothing}
            />
          ))}
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row">{LONG_NAME}</th>
          <td data-label="descending">1.5 GB</td>
          <td data-label="unsorted">–</td>
        </tr>
      </tbody>
    </table>
    <Settings>
      <Setting title="A setting" description="With a sentence." value="on">
        <button type="button">Turn off</button>
      </Setting>
      <Setting title="Another one" problem="It has no effect: the policy refuses it." value="off" />
    </Settings>
  </Card>
)

const Messages = () => (
  <Card title="Messages">
    <Problem error={PROBLEM} />
    <p class="banner">The connection to the coordinator is lost.</p>
    <Command text="box create fig --tier lite" />
    <Skeleton label="Loading the list." rows={3} />
    <EmptyState icon={BoxIcon} title="There is no box.">
      <p>A box is a Linux machine on which you and coding agents work.</p>
      <p class="buttons">
        <button type="button" class="primary">
          Create the first box
        </button>
      </p>
    </EmptyState>
  </Card>
)
