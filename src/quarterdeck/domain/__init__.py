"""Types that every other package may use: errors, ids, structs, text helpers. Imports no other
package of ours.
"""
