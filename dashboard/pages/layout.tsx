// What all pages have: the sidebar, the bar above the page, the banner, and the page of the current path.

import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect } from 'preact/hooks'
import { mayOpenPage } from '../data/access.ts'
import { formatAge } from '../data/age.ts'
import {
  boxes,
  isOutdated,
  isReturning,
  isSignedOut,
  lostSince,
  now,
  session,
  startError,
  startStore,
} from '../data/live.ts'
import { navigations, path } from '../data/navigation.ts'
import { parseRoute } from '../data/routes.ts'
import { BoxActionDialog, closeBoxDialog } from '../views/box-actions.tsx'
import { focusHeading } from '../views/focus-heading.ts'
import { keepFocus } from '../views/keep-focus.ts'
import { Problem } from '../views/problem.tsx'
import { Sidebar } from '../views/sidebar.tsx'
import { SignedOut } from '../views/signed-out.tsx'
import { TopBar } from '../views/top-bar.tsx'
import { BoxPage } from './box.tsx'
import { BoxesPage } from './boxes.tsx'
import { WORKSPACE_PAGE_VIEWS } from './workspace-pages.ts'

export function Layout() {
  const count = navigations.value
  const isDrawerOpen = useSignal(false)
  const closeDrawer = () => {
    isDrawerOpen.value = false
  }
  useLayoutEffect(() => {
    // The first page keeps the focus of the document.
    if (count > 1) focusHeading()
    return closeBoxDialog
  }, [count])
  useEffect(keepFocus, [])
  return (
    <>
      <a class="skip" href={`${path.value}#main`} onClick={skip}>
        Skip to the content
      </a>
      <Sidebar isOpen={isDrawerOpen.value} close={closeDrawer} />
      <div>
        <TopBar
          isDrawerOpen={isDrawerOpen.value}
          openDrawer={() => {
            isDrawerOpen.value = true
          }}
        />
        <Banner />
        <main id="main">
          <Page />
        </main>
      </div>
      <BoxActionDialog />
    </>
  )
}

function skip(event: Event): void {
  event.preventDefault()
  focusHeading()
}

function Banner() {
  const isLost = lostSince.value !== null && !isSignedOut.value
  const age = lostSince.value === null ? null : formatAge(now.value - lostSince.value)
  return (
    <div role="status">
      {isSignedOut.value && (
        <p class="banner">
          <SignedOut />
        </p>
      )}
      {isLost && isReturning.value && (
        <p class="banner passing">What is shown is {age} old. The page is loading the changes.</p>
      )}
      {isLost && !isReturning.value && (
        <p class="banner">
          The connection to the coordinator is lost.
          {boxes.value !== null && <> What is shown is {age} old.</>} The page connects again by itself.
        </p>
      )}
      {isOutdated.value && (
        <p class="banner">The coordinator has a newer version of this page. The next navigation loads it.</p>
      )}
    </div>
  )
}

function Page() {
  const route = parseRoute(path.value)
  if (startError.value !== null)
    return (
      <>
        <h1 tabIndex={-1}>The session could not be loaded</h1>
        <Problem error={startError.value} />
        <button type="button" onClick={() => void startStore()}>
          Try again
        </button>
      </>
    )
  if (route.page === 'boxes') return <BoxesPage />
  if (route.page === 'box') return <BoxPage name={route.name} tab={route.tab} />
  if (route.page === 'workspace') {
    if (session.value === null) return <p>Loading the session.</p>
    if (!mayOpenPage(session.value.user.role, route.name))
      return (
        <>
          <h1 tabIndex={-1}>This page is not for your role</h1>
          <p>
            {session.value.user.role === 'contractor'
              ? 'Contractors use their own boxes, and do not see the rest of the workspace.'
              : 'Only owners see it.'}
          </p>
        </>
      )
    const Workspace = WORKSPACE_PAGE_VIEWS[route.name]
    return <Workspace />
  }
  return (
    <>
      <h1 tabIndex={-1}>There is no such page</h1>
      <p>
        <a href="./">Show the boxes</a>
      </p>
    </>
  )
}
