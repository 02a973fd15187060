// Starts the dashboard.
import { render } from 'preact'
import { startStore } from './data/live.ts'
import { startNavigation } from './data/navigation.ts'
import { startPreferences } from './data/preferences.ts'
import { Layout } from './pages/layout.tsx'

startPreferences()
startNavigation()
const root = document.getElementById('app')
if (root !== null) {
  root.replaceChildren()
  render(<Layout />, root)
}
void startStore()
