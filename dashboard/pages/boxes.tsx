// The page of all boxes.
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { Box } from '../../shared/api/boxes.ts'
import type { Tier } from '../../shared/tiers.ts'
import { formatAge } from '../data/age.ts'
import { formatState, SORTS, type Sort, selectBoxes } from '../data/items.ts'
import { boxes, getClient, now, session } from '../data/live.ts'
import { formatBoxPath } from '../data/routes.ts'
import { TIER_OPTIONS } from '../data/tiers.ts'
import { showHidden } from '../data/visible-text.ts'
import { BoxActions } from '../views/box-actions.tsx'
import { Command } from '../views/command.tsx'
import { focusHeading } from '../views/focus-heading.ts'
import { FormDialog } from '../views/form-dialog.tsx'
import { NextSteps } from '../views/next-steps.tsx'

export function BoxesPage() {
  const filter = useSignal('')
  const sort = useSignal<Sort>('name')
  const isCreating = useSignal(false)
  const created = useSignal<string | null>(null)
  useEffect(() => {
    document.title = 'Boxes · Boxwood'
  }, [])
  const all = boxes.value
  const shown = all === null ? [] : selectBoxes(all, filter.value, sort.value)
  return (
    <>
      <h1 tabIndex={-1}>Boxes</h1>
      <p class="tools">
        <button
          type="button"
          class="primary"
          onClick={() => {
            isCreating.value = true
          }}
        >
          Create a box
        </button>
        <label>
          Filter{' '}
          <input
            type="search"
            value={filter}
            onInput={({ currentTarget }) => {
              filter.value = currentTarget.value
            }}
          />
        </label>
        <label>
          Sort by{' '}
          <select
            value={sort}
            onChange={({ currentTarget }) => {
              sort.value = currentTarget.value as Sort
            }}
          >
            {Object.entries(SORTS).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <Command text="box ls" />
      </p>
      {created.value !== null && <NextSteps name={created.value} />}
      {all === null ? (
        <p>Loading the boxes.</p>
      ) : shown.length === 0 ? (
        <p>{all.size === 0 ? 'There is no box.' : 'No box matches the filter.'}</p>
      ) : (
        <BoxTable items={shown} />
      )}
      {isCreating.value && (
        <FormDialog
          title="Create a box"
          fields={[
            { name: 'name', label: 'Name', hint: 'Default: a fruit name' },
            { name: 'tier', label: 'Tier', options: TIER_OPTIONS },
          ]}
          submitLabel="Create"
          formatCommand={({ name, tier }) =>
            ['box create', name, tier && `--tier ${tier}`].filter(Boolean).join(' ')
          }
          onClose={() => {
            isCreating.value = false
          }}
          submit={async ({ name, tier }, key) => {
            const { box } = await getClient().createBox(
              { ...(name && { name }), ...(tier && { tier: tier as Tier }) },
              key,
            )
            created.value = box.hostname
            isCreating.value = false
            focusHeading()
          }}
        />
      )}
    </>
  )
}

function BoxTable({ items }: { items: Box[] }) {
  const focused = useRef<Element | null>(null)
  useLayoutEffect(() => {
    // A live change may have removed the element that had the focus.
    if (focused.current?.isConnected === false && document.activeElement === document.body) focusHeading()
  })
  return (
    <table
      onFocusCapture={({ target }) => {
        focused.current = target as Element
      }}
    >
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">State</th>
          <th scope="col">Tier</th>
          <th scope="col">Owner</th>
          <th scope="col">Last change</th>
          <th scope="col">Actions</th>
        </tr>
      </thead>
      <tbody>
        {items.map((box) => (
          <BoxRow key={box.id} box={box} />
        ))}
      </tbody>
    </table>
  )
}

function BoxRow({ box }: { box: Box }) {
  const { hostname, kind, observedState, tier, ownerUserId, updatedAt } = box
  return (
    <tr>
      <th scope="row">
        <a href={formatBoxPath(hostname)}>{showHidden(hostname)}</a>
        {kind === 'machine' && <small> machine</small>}
      </th>
      <td data-label="State">
        <span class={`state ${observedState}`}>{formatState(observedState)}</span>
      </td>
      <td data-label="Tier">{tier}</td>
      <td data-label="Owner">{ownerUserId === session.value?.user.id ? 'you' : ownerUserId}</td>
      <td data-label="Last change">
        <time dateTime={updatedAt}>{formatAge(now.value - Date.parse(updatedAt))} ago</time>
      </td>
      <td>
        <BoxActions box={box} />
      </td>
    </tr>
  )
}
