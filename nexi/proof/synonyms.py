"""Words that say the same in most sentences, so that a truthful rewording is not taken for another claim.

Below `terms`. Only general English; a word stands in one group, and opposites never share one.
"""

from __future__ import annotations

from nexi.text.stems import stem

_GROUPS = """
begin start commence initiate onset launch outset
end finish conclude terminate cease expire
build construct erect
create make produce generate form
found establish institute
big large great huge vast enormous sizable considerable substantial massive immense
small little tiny minor
important significant crucial key vital essential notable major main principal chief primary
famous well-known renowned celebrated noted prominent
show demonstrate illustrate indicate reveal display exhibit
say state declare announce assert claim remark note mention
tell inform
use utilize utilise employ usage utilization
help assist aid
buy purchase acquire
get obtain receive gain earn
give provide supply offer grant furnish deliver
need require necessitate
let allow permit enable
stop halt prevent
keep retain maintain preserve
move relocate shift transfer
leave depart exit
arrive reach
happen occur
live reside dwell inhabit inhabitant resident
die perish decease
kill slay
locate situate lie position
near close adjacent beside
city town municipality
country nation state
area region zone territory district
film movie picture
song track tune
author writer
movie film
actor actress performer
child kid
boss leader head chief
person individual
people population inhabitants folk
company firm corporation business enterprise
job work occupation profession
war conflict
fight battle combat
attack assault
army military troops forces
king monarch sovereign ruler
power authority
law legislation statute
rule govern reign
choose select pick opt
elect vote
name call term dub title entitle designate
known called
include contain comprise encompass incorporate feature
consist composed
divide split separate partition
join unite combine merge
link connect
change alter modify adjust
grow expand increase rise climb
decrease decline drop fall reduce lower diminish
cut reduce
quick fast rapid swift speedy
quickly rapidly swiftly fast
often frequently regularly commonly
usually typically generally normally ordinarily commonly
almost nearly virtually
about approximately roughly around circa
many numerous several multiple various
some certain
enough sufficient adequate
main principal
whole entire complete total full
all every each
only solely exclusively merely
also additionally furthermore moreover
but however though although yet nevertheless
because since due owing
thus therefore hence consequently
while whereas
before prior preceding
after following subsequent
later subsequently afterwards afterward
earlier previously formerly
first initial initially original originally
last final
now currently presently today
new recent novel
old ancient elderly
modern contemporary
hard difficult tough challenging
easy simple straightforward
rich wealthy affluent
poor impoverished
right correct accurate
wrong incorrect erroneous
error mistake fault
problem issue difficulty
answer reply respond response
ask inquire enquire question
think believe consider regard deem
know recognize recognise
see view observe perceive
look appear seem
find discover detect
search seek
try attempt endeavor endeavour
plan intend
want wish desire
like enjoy
refuse decline reject
agree consent
write author pen compose
publish issue release
send transmit
receive accept
carry transport convey
hold possess own
put place set
run operate function
fix repair mend
break shatter
hit strike
win triumph victory
defeat beat overcome vanquish
lose loss
protect defend guard safeguard
destroy demolish ruin wreck
damage harm
hurt injure
rest remain stay
become turn
return revert
teach instruct educate
teacher instructor
learn study
school academy
student pupil
university college
test examine exam
goal aim objective purpose target
result outcome consequence
cause reason
effect impact influence
way method manner means approach technique
kind type sort variety
part portion section segment component
piece fragment
top peak summit
border boundary frontier
road street
house home residence dwelling
building structure edifice
picture image photograph photo
car automobile vehicle
ship vessel
plane aircraft airplane aeroplane
doctor physician
illness disease sickness ailment
medicine drug medication
food nourishment
money funds
cost price expense
pay remuneration
rate speed
size dimension
amount quantity
number count
group band collection
team squad
member participant
meeting gathering assembly
speech address lecture
book volume
story tale narrative
idea concept notion
belief faith
religion creed
god deity
church congregation
holy sacred
law statute
crime offense offence
prison jail
police constabulary
judge adjudicate
court tribunal
government administration
president chairman
minister secretary
worker employee labourer laborer
hire recruit
fire dismiss sack
retire withdraw
appoint nominate assign
lead head direct guide
manage administer oversee supervise
develop evolve
improve enhance
support back
oppose resist
happy glad
sad unhappy
beautiful lovely
strange odd unusual peculiar
common widespread prevalent
rare uncommon scarce
different distinct diverse
similar alike comparable
same identical
special particular specific
clear evident obvious apparent
true factual
false untrue
dangerous hazardous perilous
safe secure
strong powerful mighty
weak feeble
hot warm
cold chilly
wet damp moist
near nearby
far distant remote
inside within
outside beyond
between amid among amongst
through via
toward towards
against versus
despite notwithstanding
per each
origin source
ancestor forebear forefather
descendant offspring
wife spouse
marry wed
birth born
childhood youth
father dad
mother mum mom
baby infant
woman female
man male
citizen national
foreign overseas
american us
british uk
european europe
describe depict portray characterize characterise
define specify
explain clarify
discuss debate
suggest propose recommend
order command
force compel
follow obey
represent symbolize
stand represent
replace substitute supersede
remove delete eliminate
add append insert
return yield
call invoke
execute perform carry
load fetch
store save
default preset
value figure
option setting parameter
directory folder
delete erase
display print
input entry
string text
convert transform translate
copy duplicate replicate
check verify
ensure guarantee
avoid evade
ignore disregard
match correspond
equal equivalent
exceed surpass
extend stretch
spread disseminate
host hold
star starred
act perform
play perform
record tape
debut premiere
award prize honour honor
score tally
championship title
season campaign
coach trainer
compete contest
participate take
attend visit
travel journey
trip voyage journey
capital metropolis
river stream
mountain peak
sea ocean
forest woodland
island isle
land terrain
coast shore
soil ground
rock stone
plant vegetation
animal creature
human mankind humanity
body organism
brain mind
blood gore
heat warmth
light illumination
energy power
water aqua
air atmosphere
oxygen o2
theory hypothesis
experiment trial
evidence proof
fact truth
research investigation
scientist researcher
invent devise
device apparatus instrument
machine engine
tool utility
material substance
metal alloy
gas vapour vapor
mixture blend
measure gauge
weight mass
distance length
height altitude elevation
width breadth
depth profundity
time period era age epoch
century hundred-year
annual yearly
annually yearly
daily everyday
monthly month
simultaneously concurrently
immediately instantly
suddenly abruptly
gradually slowly
constantly continuously continually
permanently forever
temporarily briefly
approx approximately
"""


def _grouped() -> dict[str, str]:
    table: dict[str, str] = {}
    for line in _GROUPS.split("\n"):
        words = [stem(word) for word in line.split()]
        for word in words:
            table.setdefault(word, table.get(words[0], words[0]))
    return table


GROUP_OF = _grouped()
