// The page of one box.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Box, BoxDetail } from '../../shared/api/boxes.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { mayUseSecrets } from '../data/access.ts'
import { groupEvents } from '../data/event-groups.ts'
import { formatLabels, formatState } from '../data/items.ts'
import { boxes, getClient, session } from '../data/live.ts'
import { query, replacePath } from '../data/navigation.ts'
import { formatActor } from '../data/people.ts'
import { BOX_TABS, type BoxTab, formatBoxPath, isBoxId } from '../data/routes.ts'
import { describeLog } from '../data/state-problems.ts'
import { hasUnsent } from '../data/unsent.ts'
import { showHidden } from '../data/visible-text.ts'
import { Card } from '../design/card.tsx'
import { Icon } from '../design/icon.tsx'
import { TerminalIcon } from '../design/icons.ts'
import { Skeleton } from '../design/skeleton.tsx'
import { Age } from '../views/age.tsx'
import { BoxActions } from '../views/box-actions.tsx'
import { useBoxSettings } from '../views/box-settings.tsx'
import { Command, Commands } from '../views/command.tsx'
import { LastCommands } from '../views/last-commands.tsx'
import { lazy } from '../views/lazy.tsx'
import { LocalTime } from '../views/local-time.tsx'
import { OpenPorts } from '../views/open-ports.tsx'
import { Problem } from '../views/problem.tsx'
import { UsageCard } from '../views/usage-card.tsx'
import { useAction } from '../views/use-action.ts'
import { useViewer } from '../views/use-member-names.ts'
import { BOX_TAB_PAGES } from './box-tabs.ts'
import { DeletedBoxPage } from './deleted-box.tsx'

const AtWork = lazy(async () => (await import('../views/conversations/at-work.tsx')).AtWork)
const BoxSecrets = lazy(async () => (await import('../views/secrets/box-secrets.tsx')).BoxSecrets)

/** The attempts and errors of a job change without a change of the box. */
const JOB_POLL_MS = 5_000

export function BoxPage({ name, tab }: { name: string; tab: BoxTab }) {
  useEffect(() => {
    const label = tab === 'overview' ? '' : ` · ${BOX_TABS[tab]}`
    document.title = `${showHidden(name)}${label} · Boxwood`
  }, [name, tab])
  const { box, isGone } = useNamedBox(name, tab)
  if (!box && !isGone && boxes.value !== null && isBoxId(name)) return <DeletedBoxPage key={name} id={name} />
  return (
    <>
      <div class="page-head">
        <h1 tabIndex={-1}>{showHidden(name)}</h1>
        {box && <BoxHead key={box.id} box={box} />}
      </div>
      <Tabs name={name} current={tab} />
      <div role="status">
        {isGone && <p class="problem">The box was deleted, or is not yours any more.</p>}
      </div>
      {box ? (
        <TabPage key={box.id} box={box} tab={tab} />
      ) : (
        !isGone && (
          <p>
            {boxes.value === null
              ? 'Loading the box.'
              : 'There is no box with this name, or it is not yours.'}
          </p>
        )
      )}
    </>
  )
}

/**
 * The box with this name or id. Another user may rename the box: the page then gets its new name, as it does when it was opened by the id. A page with a text that is not
 * sent stays when the box is deleted.
 */
function useNamedBox(name: string, tab: BoxTab): { box: Box | undefined; isGone: boolean } {
  const last = useRef<{ name: string; box: Box } | null>(null)
  const all = boxes.value
  const named = all && (all.get(name) ?? [...all.values()].find(({ hostname }) => hostname === name))
  if (named) last.current = { name, box: named }
  else if (last.current?.name !== name) last.current = null
  const previous = last.current?.box
  const box = named ?? (previous && (all?.get(previous.id) ?? previous))
  const isGone = box !== undefined && all !== null && !all.has(box.id)
  const newName = box !== undefined && !isGone && box.hostname !== name ? box.hostname : null
  useEffect(() => {
    if (newName !== null) replacePath(`${formatBoxPath(newName, tab)}${query.value}`)
  }, [newName])
  return { box: isGone && !hasUnsent() ? undefined : box, isGone }
}

function Tabs({ name, current }: { name: string; current: BoxTab }) {
  const tabs = Object.keys(BOX_TABS) as BoxTab[]
  const element = useRef<HTMLElement>(null)
  useEffect(() => {
    const list = element.current
    const shown = list?.querySelector<HTMLElement>('[aria-current]')
    // On a narrow screen, the tabs scroll. The page itself does not.
    if (list && shown) list.scrollLeft = shown.offsetLeft - (list.clientWidth - shown.offsetWidth) / 2
  }, [current])
  if (tabs.length === 1) return null
  return (
    <nav ref={element} aria-label="Pages of the box" class="tabs">
      {tabs.map((tab) => (
        <a key={tab} href={formatBoxPath(name, tab)} aria-current={tab === current ? 'page' : undefined}>
          {BOX_TABS[tab]}
        </a>
      ))}
    </nav>
  )
}

function TabPage({ box, tab }: { box: Box; tab: BoxTab }) {
  if (tab === 'overview') return <Detail box={box} />
  const Page = BOX_TAB_PAGES[tab]
  return <Page key={tab} box={box} />
}

function Detail({ box }: { box: Box }) {
  const detail = useSignal<BoxDetail | null>(null)
  const error = useSignal<BoxwoodError | null>(null)
  const isWorking = (detail.value?.job ?? null) !== null
  // `box` is another object after each change.
  useEffect(() => {
    let isCurrent = true
    const load = () =>
      getClient()
        .loadBox(box.id)
        .then(
          (response) => {
            if (!isCurrent) return
            detail.value = response
            error.value = null
          },
          (reason) => {
            if (isCurrent) error.value = toBoxwoodError(reason)
          },
        )
    void load()
    const timer = isWorking
      ? setInterval(() => document.visibilityState === 'visible' && void load(), JOB_POLL_MS)
      : undefined
    return () => {
      isCurrent = false
      clearInterval(timer)
    }
  }, [box, isWorking])
  if (detail.value === null)
    return (
      <>
        <Problem error={error.value} />
        <Skeleton label="Loading the details." />
      </>
    )
  return (
    <>
      <Problem error={error.value} />
      <Overview box={box} detail={detail.value} />
    </>
  )
}

/** What the pages of a box have beside its name: its state, its actions and its settings. */
function BoxHead({ box }: { box: Box }) {
  const { hostname, observedState, tier, region, image } = box
  const terminal = useAction()
  const openTerminal = async () => (await import('../data/terminal-sessions.ts')).openNewSession(box, {})
  const settings = useBoxSettings(box)
  const isRunning = observedState === 'running'
  return (
    <>
      <span class={`state ${observedState}`}>{formatState(observedState)}</span>
      <small>
        {[tier, region, image]
          .filter((text) => text !== null)
          .map(showHidden)
          .join(' · ')}
      </small>
      <div class="actions">
        <Commands texts={[`box ssh ${hostname}`, `box show ${hostname}`]} />
        {isRunning && (
          <>
            <a class="button" href={`desktop?box=${encodeURIComponent(hostname)}`}>
              Desktop
            </a>
            <button
              type="button"
              class="primary"
              aria-busy={terminal.isBusy.value}
              onClick={() => void terminal.run(openTerminal)}
            >
              <Icon of={TerminalIcon} />
              Open terminal
            </button>
          </>
        )}
      </div>
      <BoxActions box={box} settings={settings} />
      {terminal.error.value !== null && <Problem error={terminal.error.value} />}
    </>
  )
}

function Overview({ box, detail }: { box: Box; detail: BoxDetail }) {
  const { vitals } = detail
  const hasCodingAgent =
    detail.state.connected && Object.values(vitals?.coding_agents ?? {}).includes('ready')
  const role = session.value?.user.role
  return (
    <>
      <Job detail={detail} />
      <div class="cards">
        <UsageCard box={box} vitals={vitals} />
        <LastCommands box={box} />
        {hasCodingAgent && <AtWork box={box} />}
        <OpenPorts box={box} />
        <Card title="Schedule">
          <Schedule detail={detail} />
        </Card>
      </div>
      {role !== undefined && mayUseSecrets(role) && box.desiredState !== 'terminated' && (
        <BoxSecrets box={box} />
      )}
      <Events detail={detail} />
      <Details detail={detail} />
    </>
  )
}

function Schedule({ detail: { box } }: { detail: BoxDetail }) {
  return (
    <dl>
      <Term name="Suspend when idle">
        {box.autoPauseMin === null ? 'never' : `after ${box.autoPauseMin} minutes`}
        {box.pauseAt !== null && (
          <>
            ; suspended at <LocalTime at={box.pauseAt} />
          </>
        )}
      </Term>
      <Term name="Snapshots">
        {box.autoSnapshotHours === null ? 'on request' : `every ${box.autoSnapshotHours} hours`}
      </Term>
      {box.deleteAt !== null && (
        <Term name="Deletion">
          with its files, at <LocalTime at={box.deleteAt} />
        </Term>
      )}
    </dl>
  )
}

/** What the coordinator does with the box, and why it has not succeeded. */
function Job({ detail: { box, job } }: { detail: BoxDetail }) {
  return (
    <>
      {job !== null && (
        <section aria-label="Job">
          <h2>Job</h2>
          <p>
            {job.op}, step {showHidden(job.step)}, attempt {job.attempt}
            {job.nextRetryAt !== null && (
              <>
                , next attempt at <LocalTime at={job.nextRetryAt} />
              </>
            )}
          </p>
          {job.lastError !== null && <p class="problem">{showHidden(job.lastError)}</p>}
          {job.lastError !== null && (
            <p>
              {showHidden(describeLog(box))} What boxes need is checked by <Command text="box doctor" />
            </p>
          )}
        </section>
      )}
    </>
  )
}

function Details({ detail }: { detail: BoxDetail }) {
  const { box, state, vitals, environment, envVars } = detail
  return (
    <details class="details">
      <summary>
        <h2>Details</h2>
      </summary>
      <dl>
        <Term name="State since">
          <Age at={state.since} />, {state.connected ? 'connected' : 'not connected'}
        </Term>
        <Term name="Id">{box.id}</Term>
        <Term name="Owner">{box.ownerUserId === session.value?.user.id ? 'you' : box.ownerUserId}</Term>
        <Term name="Kind">{box.kind}</Term>
        <Term name="Tier">{box.tier}</Term>
        <Term name="Region">{box.region}</Term>
        {box.image !== null && <Term name="Image">{showHidden(box.image)}</Term>}
        <Term name="Isolation">
          {box.isolation === null
            ? 'not known yet'
            : `${box.isolation.level}, network ${box.isolation.network}`}
        </Term>
        {vitals && <Term name="Agent">{showHidden(vitals.agent_version)}</Term>}
        <Term name="Labels">{showHidden(formatLabels(box).join(', ')) || 'none'}</Term>
        <Term name="Restricted">{box.restricted ? 'yes: it gets no secrets' : 'no'}</Term>
        <Term name="Environment">
          {environment ? `${showHidden(environment.name)}, version ${environment.versionNo}` : 'none'}
        </Term>
        <Term name="Variables">
          {envVars.length === 0 ? 'none' : envVars.map((variable) => showHidden(variable.name)).join(', ')}
        </Term>
      </dl>
    </details>
  )
}

function Events({ detail: { events } }: { detail: BoxDetail }) {
  const viewer = useViewer()
  return (
    <>
      <h2>Events</h2>
      <ol class="events">
        {groupEvents(events).map(({ event, earlier }) => (
          <li key={event.id}>
            <span class={`state ${event.toState}`}>{formatState(event.toState)}</span>
            <span>
              {showHidden(event.reason)}{' '}
              {earlier.length > 0 && <small>after {earlier.map(formatState).join(', ')}</small>}{' '}
              {event.code !== null && <code>{event.code}</code>}
            </span>
            <small>
              {showHidden(formatActor(event.actor, viewer))}, <Age at={event.at} />
            </small>
          </li>
        ))}
      </ol>
    </>
  )
}

function Term({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
