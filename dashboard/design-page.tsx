// Starts the page of the components, which has no session.
import { render } from 'preact'
import { startNavigation } from './data/navigation.ts'
import { startPreferences } from './data/preferences.ts'
import { DesignPage } from './pages/design.tsx'

startPreferences()
startNavigation()
const root = document.getElementById('app')
if (root !== null) {
  root.replaceChildren()
  render(
    <main id="main">
      <DesignPage />
    </main>,
    root,
  )
}
